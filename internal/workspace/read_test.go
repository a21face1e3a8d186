package workspace

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"treeline/internal/call"
)

// noPictures takes nothing for a picture.
func noPictures([]byte) (Picture, bool) { return Picture{}, false }

// dots takes files that begin with "PIC" for pictures of two by three pixels, which a model sees if asked.
func dots(vision bool) PictureFunc {
	return func(content []byte) (Picture, bool) {
		if !strings.HasPrefix(string(content), "PIC") {
			return Picture{}, false
		}
		p := Picture{Words: "a picture, 2 by 3 pixels", MIMEType: "image/png", Width: 2, Height: 3}
		if vision {
			p.Block = &call.Content{Type: "image", Data: []byte("small"), MIMEType: "image/png"}
		}
		return p, true
	}
}

// wantJSON checks the exact JSON of v.
func wantJSON(t *testing.T, v any, want string) {
	t.Helper()
	got, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestReadText(t *testing.T) {
	limits := Limits{ReadChars: 20, ReadLines: 4}
	const five = "one\ntwo\nthree\nfour\nfive\n"
	for _, c := range []struct {
		name, content string
		span          Span
		text, data    string
	}{
		{"whole", "one\ntwo\n", Span{}, "1\tone\n2\ttwo",
			`{"startLine":1,"endLine":2,"totalLines":2,"newline":"lf","finalNewline":true}`},
		{"a range", five, Span{StartLine: 2, EndLine: 3}, "a (lines 2 to 3 of 5)\n2\ttwo\n3\tthree",
			`{"startLine":2,"endLine":3,"totalLines":5,"newline":"lf","finalNewline":true}`},
		{"one line", five, Span{StartLine: 5}, "a (line 5 of 5)\n5\tfive",
			`{"startLine":5,"endLine":5,"totalLines":5,"newline":"lf","finalNewline":true}`},
		{"a range that only ends past the end is served to it", five, Span{StartLine: 4, EndLine: 99}, "a (lines 4 to 5 of 5)\n4\tfour\n5\tfive",
			`{"startLine":4,"endLine":5,"totalLines":5,"newline":"lf","finalNewline":true}`},
		{"no closing newline", "one\r\ntwo", Span{}, "1\tone\n2\ttwo",
			`{"startLine":1,"endLine":2,"totalLines":2,"newline":"crlf","finalNewline":false}`},
		{"mixed newlines", "a\r\nb\n", Span{}, "1\ta\n2\tb",
			`{"startLine":1,"endLine":2,"totalLines":2,"newline":"mixed","finalNewline":true}`},
		{"a lone carriage return is content", "a\rb", Span{}, "1\ta\rb",
			`{"startLine":1,"endLine":1,"totalLines":1,"newline":"none","finalNewline":false}`},
		{"a byte order mark is not shown", BOM + "one\n", Span{}, "1\tone",
			`{"startLine":1,"endLine":1,"totalLines":1,"newline":"lf","finalNewline":true}`},
		{"empty", "", Span{}, "a (empty, 0 lines)",
			`{"startLine":1,"endLine":0,"totalLines":0,"newline":"none","finalNewline":false}`},
		{"line 1 of an empty file", "", Span{StartLine: 1, EndLine: 9}, "a (empty, 0 lines)",
			`{"startLine":1,"endLine":0,"totalLines":0,"newline":"none","finalNewline":false}`},
		{"cut by lines", "1\n2\n3\n4\n5\n", Span{},
			"a (lines 1 to 4 of 5)\n1\t1\n2\t2\n3\t3\n4\t4\n[cut here: a read shows at most 4 lines of a text and this one has 5; read on with startLine 5]",
			`{"startLine":1,"endLine":4,"totalLines":5,"newline":"lf","finalNewline":true,"cut":"lines","nextLine":5}`},
		{"not cut where the range ends at the cap", "1\n2\n3\n4\n5\n", Span{EndLine: 4}, "a (lines 1 to 4 of 5)\n1\t1\n2\t2\n3\t3\n4\t4",
			`{"startLine":1,"endLine":4,"totalLines":5,"newline":"lf","finalNewline":true}`},
		{"cut by characters leaves whole lines", "123456789\n1234567890x\n", Span{},
			"a (line 1 of 2)\n1\t123456789\n[cut here: a read shows at most 20 characters and these lines are long; ask for fewer lines, or read on with startLine 2]",
			`{"startLine":1,"endLine":1,"totalLines":2,"newline":"lf","finalNewline":true,"cut":"characters","nextLine":2}`},
		{"the budget to the character", "123456789\n123456789\n", Span{}, "1\t123456789\n2\t123456789",
			`{"startLine":1,"endLine":2,"totalLines":2,"newline":"lf","finalNewline":true}`},
		{"a line of the whole budget", "éééééééééééééééééééé\n", Span{}, "1\téééééééééééééééééééé",
			`{"startLine":1,"endLine":1,"totalLines":1,"newline":"lf","finalNewline":true}`},
		{"a line over the budget gives a prefix", "éééééééééééééééééééé→\nx", Span{},
			"a (line 1 of 2)\n1\téééééééééééééééééééé\n[cut here: a read shows at most 20 characters and these lines are long; ask for fewer lines, or read " +
				"on with startLine 1 and startColumn 21]",
			`{"startLine":1,"endLine":1,"totalLines":2,"newline":"lf","finalNewline":false,"cut":"characters","nextLine":1,"nextColumn":21}`},
		{"and goes on in it", "éééééééééééééééééééé→\nx", Span{StartLine: 1, StartColumn: 21}, "a (lines 1 to 2 of 2, from column 21)\n1\t→\n2\tx",
			`{"startLine":1,"endLine":2,"totalLines":2,"newline":"lf","finalNewline":false}`},
		{"a line over the budget behind another fills what is left", "ab\n1234567890123456789012345", Span{},
			"a (lines 1 to 2 of 2)\n1\tab\n2\t12345678901234567\n[cut here: a read shows at most 20 characters and these lines are long; ask for fewer lines, " +
				"or read on with startLine 2 and startColumn 18]",
			`{"startLine":1,"endLine":2,"totalLines":2,"newline":"lf","finalNewline":false,"cut":"characters","nextLine":2,"nextColumn":18}`},
		{"the last column", "abc", Span{StartColumn: 3}, "a (line 1 of 1, from column 3)\n1\tc",
			`{"startLine":1,"endLine":1,"totalLines":1,"newline":"none","finalNewline":false}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			tree, content := files{"a": c.content}.tree()
			blocks, data, err := tree.Read([]ReadRequest{{"a", c.span}}, limits, content, noPictures)
			if err != nil {
				t.Fatal(err)
			}
			if len(blocks) != 1 || blocks[0].Text != c.text {
				t.Errorf("got  %q\nwant %q", blocks, c.text)
			}
			wantJSON(t, data, `{"files":[{"path":"a","revision":3,`+c.data[1:]+`]}`)
		})
	}
}

func TestReadRefuses(t *testing.T) {
	tree, content := files{"report.md": "one\ntwo\n", "d/e": "x", "empty": ""}.tree()
	for _, c := range []struct {
		name  string
		path  string
		span  Span
		code  call.Code
		facts []string
	}{
		{"no path", "../x", Span{}, call.PathInvalid, []string{`"../x"`}},
		{"the sandbox's spelling", "workspace/report.md", Span{}, call.PathInSandboxForm, []string{`the path is "report.md"`}},
		{"not there", "reprot.md", Span{}, call.PathNotFound, []string{`"report.md"`}},
		{"a folder", "d", Span{}, call.PathIsFolder, []string{`"d/e"`}},
		{"starts past the end", "report.md", Span{StartLine: 3}, call.RangeOutOfFile, []string{`"report.md"`, "3", "2 lines"}},
		{"starts past the end of nothing", "empty", Span{StartLine: 2}, call.RangeOutOfFile, []string{"0 lines"}},
		{"a column past the end", "report.md", Span{StartLine: 2, StartColumn: 4}, call.RangeOutOfFile, []string{"line 2 has only 3 characters"}},
		{"a column in nothing", "empty", Span{StartColumn: 2}, call.RangeOutOfFile, []string{"0 lines"}},
		{"ends before it starts", "report.md", Span{StartLine: 2, EndLine: 1}, call.InvalidArguments, []string{`"endLine" is 1`, `"startLine" is 2`}},
		{"a negative line", "report.md", Span{StartLine: -1}, call.InvalidArguments, []string{`"startLine" is -1`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, _, err := tree.Read([]ReadRequest{{c.path, c.span}}, DefaultLimits(), content, noPictures)
			wantRefusal(t, refusalIn(t, err), c.code, c.facts...)
		})
	}
	t.Run("the storage's error is no refusal", func(t *testing.T) {
		broken := errors.New("broken")
		_, _, err := tree.Read([]ReadRequest{{Path: "d/e"}}, DefaultLimits(), func(string) ([]byte, error) { return nil, broken }, noPictures)
		var refusal *call.Refusal
		if !errors.Is(err, broken) || errors.As(err, &refusal) {
			t.Errorf("got %v", err)
		}
	})
}

func TestReadSeveral(t *testing.T) {
	tree, content := files{"a": "one\n", "b": "two", "long": strings.Repeat("1234567\n", 4), "dot": "PIC\x00", "z": "\x00"}.tree()
	limits := Limits{ReadChars: 20, ReadLines: 3}
	read := func(t *testing.T, picture PictureFunc, paths ...string) ([]call.Content, ReadData) {
		t.Helper()
		var requests []ReadRequest
		for _, p := range paths {
			requests = append(requests, ReadRequest{Path: p})
		}
		blocks, data, err := tree.Read(requests, limits, content, picture)
		if err != nil {
			t.Fatal(err)
		}
		return blocks, data
	}
	t.Run("one that is not there fails alone", func(t *testing.T) {
		blocks, data := read(t, noPictures, "a", "nope", "b")
		if want := "a (1 line)\n1\tone\n\n\"nope\" could not be read (path_not_found). "; !strings.HasPrefix(blocks[0].Text, want) {
			t.Errorf("got %q, want it to begin %q", blocks[0].Text, want)
		}
		if want := "\n\nb (1 line)\n1\ttwo"; !strings.HasSuffix(blocks[0].Text, want) {
			t.Errorf("got %q, want it to end %q", blocks[0].Text, want)
		}
		failed := data.Files[1].ReadFailure
		wantJSON(t, data.Files[1], fmt.Sprintf(`{"path":"nope","code":"path_not_found","message":%q}`, failed.Message))
	})
	t.Run("one budget for all, the cap for each", func(t *testing.T) {
		_, data := read(t, noPictures, "a", "long", "b")
		wantJSON(t, data, `{"files":[`+
			`{"path":"a","revision":3,"startLine":1,"endLine":1,"totalLines":1,"newline":"lf","finalNewline":true},`+
			`{"path":"long","revision":3,"startLine":1,"endLine":2,"totalLines":4,"newline":"lf","finalNewline":true,"cut":"characters","nextLine":3},`+
			`{"path":"b","revision":3,"startLine":1,"endLine":0,"totalLines":1,"newline":"none","finalNewline":false,"cut":"characters","nextLine":1}]}`)
	})
	t.Run("the same path twice", func(t *testing.T) {
		_, data := read(t, noPictures, "a", "a")
		if len(data.Files) != 2 || data.Files[1].EndLine != 1 {
			t.Errorf("got %+v", data)
		}
	})
	t.Run("none: the first one's code, all of them named", func(t *testing.T) {
		_, _, err := tree.Read([]ReadRequest{{Path: "a", Span: Span{StartLine: 9}}, {Path: "nope"}}, limits, content, noPictures)
		wantRefusal(t, refusalIn(t, err), call.RangeOutOfFile, `"a"`, `"nope"`, "path_not_found")
	})
	t.Run("a picture stands between the texts", func(t *testing.T) {
		blocks, data := read(t, dots(true), "a", "dot", "b")
		wantJSON(t, blocks, `[{"type":"text","text":"a (1 line)\n1\tone\n\ndot: a picture, 2 by 3 pixels"},`+
			`{"type":"image","data":"c21hbGw=","mimeType":"image/png"},{"type":"text","text":"b (1 line)\n1\ttwo"}]`)
		wantJSON(t, data.Files[1], `{"path":"dot","revision":3,"mimeType":"image/png","width":2,"height":3,"bytes":4}`)
	})
	t.Run("a model without sight has words", func(t *testing.T) {
		blocks, data := read(t, dots(false), "dot")
		wantJSON(t, blocks, `[{"type":"text","text":"dot: a picture, 2 by 3 pixels"}]`)
		wantJSON(t, data.Files[0], `{"path":"dot","revision":3,"mimeType":"image/png","width":2,"height":3,"bytes":4}`)
	})
	t.Run("a binary is described", func(t *testing.T) {
		blocks, data := read(t, dots(true), "z")
		for _, fact := range []string{"z is binary data", "1 bytes", "U+0000 is at offset 0", "run_code", `open("workspace/z", 'rb')`} {
			if !strings.Contains(blocks[0].Text, fact) {
				t.Errorf("%q does not say %q", blocks[0].Text, fact)
			}
		}
		wantJSON(t, data.Files[0], `{"path":"z","revision":3,"mimeType":"application/octet-stream","bytes":1}`)
	})
}

func TestReadAtTheDefaults(t *testing.T) {
	read := func(t *testing.T, content string, span Span) ReadLines {
		t.Helper()
		_, lines, refusal := DefaultLimits().ReadText(content, span)
		if refusal != nil {
			t.Fatal(refusal)
		}
		return lines
	}
	if got := read(t, strings.Repeat(strings.Repeat("x", 1005)+"\n", 60), Span{}); got.EndLine != 39 || got.NextLine != 40 || got.Cut != CutCharacters {
		t.Errorf("long lines: %+v", got)
	}
	if got := read(t, strings.Repeat("x\n", 2500), Span{}); got.EndLine != 2000 || got.NextLine != 2001 || got.Cut != CutLines {
		t.Errorf("many lines: %+v", got)
	}
	if got := read(t, strings.Repeat("x", 60000), Span{}); got.EndLine != 1 || got.NextLine != 1 || got.NextColumn != 40001 {
		t.Errorf("one line: %+v", got)
	}
	if got := read(t, strings.Repeat("x", 60000), Span{StartColumn: 40001}); got.EndLine != 1 || got.Cut != "" {
		t.Errorf("the rest of one line: %+v", got)
	}
}

func TestSniff(t *testing.T) {
	utf16le := func(s string) (out string) {
		for _, r := range s {
			out += string([]byte{byte(r), byte(r >> 8)})
		}
		return out
	}
	for _, c := range []struct{ name, content, mime, says string }{
		{"zip", "PK\x03\x04\x00\x01", "application/zip", "a zip archive"},
		{"xlsx", "PK\x03\x04\x00[Content_Types].xml" + strings.Repeat("\x00", 99) + "xl/workbook.xml", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", "Excel"},
		{"docx, named at the end only", "PK\x03\x04" + strings.Repeat("\x00", 200_000) + "word/document.xml", "application/vnd.openxmlformats-officedocument.wordprocessingml.document", "Word"},
		{"pdf", "%PDF-1.7\n\xe2\xe3", "application/pdf", "PDF"},
		{"gzip", "\x1f\x8b\x08", "application/gzip", "gzip"},
		{"sqlite", "SQLite format 3\x00", "application/vnd.sqlite3", "SQLite"},
		{"elf", "\x7fELF\x02\x00", "application/x-executable", "ELF"},
		{"tar", strings.Repeat("\x00", 257) + "ustar", "application/x-tar", "tar"},
		{"UTF-16 with its mark", "\xff\xfea\x00", "text/plain; charset=utf-16le", "UTF-16 (little-endian)"},
		{"UTF-16 big-endian with its mark", "\xfe\xff\x00a", "text/plain; charset=utf-16be", "UTF-16 (big-endian)"},
		{"UTF-16 without a mark", utf16le("name,value\r\n"), "text/plain; charset=utf-16le", "UTF-16 (le"},
		{"UTF-32", "\xff\xfe\x00\x00a\x00\x00\x00", "text/plain; charset=utf-32le", "UTF-32"},
		{"Latin-1", "caf\xe9 au lait\n", "text/plain", "Latin-1"},
		{"nothing known", "\x00\x01\x02", "application/octet-stream", "no known type"},
	} {
		t.Run(c.name, func(t *testing.T) {
			kind := sniff([]byte(c.content))
			says := kind.describe("p", []byte(c.content))
			if kind.mime != c.mime || !strings.Contains(says, c.says) || !strings.Contains(says, "run_code") {
				t.Errorf("%s: %s", kind.mime, says)
			}
			if want := fmt.Sprintf("offset %d)", FirstBadByte([]byte(c.content))); !strings.Contains(says, want) {
				t.Errorf("%q does not say %q", says, want)
			}
		})
	}
}
