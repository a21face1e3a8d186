package workspace

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"treeline/internal/call"
)

// told is what a refusal says that another call needs: the lines that it shows, and the last range that it spells out.
type told struct {
	text  string
	lines map[string]string // by number
	span  struct{ StartLine, EndLine int }
}

var (
	shownLine  = regexp.MustCompile(`(?m)^(\d+)\t(.*)$`)
	shownRange = regexp.MustCompile(`\{"startLine": \d+, "endLine": \d+\}`)
)

func whatIsTold(t *testing.T, r *call.Refusal) told {
	t.Helper()
	out := told{text: r.Text, lines: map[string]string{}}
	for _, m := range shownLine.FindAllStringSubmatch(r.Text, -1) {
		out.lines[m[1]] = m[2]
	}
	if ranges := shownRange.FindAllString(r.Text, -1); len(ranges) > 0 {
		if err := json.Unmarshal([]byte(ranges[len(ranges)-1]), &out.span); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// shown gives the lines of these numbers, joined as find has them.
func (w told) shown(t *testing.T, numbers ...string) string {
	t.Helper()
	var lines []string
	for _, n := range numbers {
		line, ok := w.lines[n]
		if !ok {
			t.Fatalf("line %s is not shown:\n%s", n, w.text)
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// Each slip is one that models make. The refusal alone, without another look at the file, has what the next call needs.
func TestARefusalHasWhatTheNextCallNeeds(t *testing.T) {
	const page = "<ul>\n  <li>Sales “up”</li>\n  <li>Costs</li>\n</ul>\n"
	const code = "def f(x):\n\tif x:\n\t\treturn 1\n\treturn 2\n"
	const table = "id,name\r\n1,Ann \r\n2,Bob\r\n3,Cem \r\n"
	findShown := func(replace string, numbers ...string) func(*testing.T, told) []Edit {
		return func(t *testing.T, w told) []Edit { return []Edit{byText(w.shown(t, numbers...), replace)} }
	}
	for _, c := range []struct {
		name, file string
		wrong      []Edit
		code       call.Code
		mended     func(*testing.T, told) []Edit
		after      string
	}{
		{"plain quotes where the file has curly ones", page, []Edit{byText(`<li>Sales "up"</li>`, "<li>Sales flat</li>")}, call.TextNotFound,
			findShown("  <li>Sales flat</li>", "2"), "<ul>\n  <li>Sales flat</li>\n  <li>Costs</li>\n</ul>\n"},
		{"plain quotes in an anchor", page, []Edit{byLine(2, 2, `  <li>Sales "up"</li>`, "  <li>Sales flat</li>")}, call.AnchorMoved,
			func(t *testing.T, w told) []Edit {
				return []Edit{byLine(2, 2, w.shown(t, "2"), "  <li>Sales flat</li>")}
			},
			"<ul>\n  <li>Sales flat</li>\n  <li>Costs</li>\n</ul>\n"},
		{"trailing blanks lost, across CRLF", table, []Edit{byText("1,Ann\n2,Bob\n3,Cem\n", "1,Ann\n")}, call.TextNotFound,
			findShown("1,Ann", "2", "3", "4"), "id,name\r\n1,Ann\r\n"},
		{"a trailing blank lost in an anchor", table, []Edit{byLine(2, 3, "1,Ann", "")}, call.AnchorMoved,
			func(t *testing.T, w told) []Edit { return []Edit{byLine(2, 3, w.shown(t, "2"), "")} }, "id,name\r\n3,Cem \r\n"},
		{"spaces where the file has tabs", code, []Edit{byText("    if x:\n        return 1", "    if not x:\n        return 1")}, call.TextNotFound,
			findShown("\tif not x:\n\t\treturn 1", "2", "3"), "def f(x):\n\tif not x:\n\t\treturn 1\n\treturn 2\n"},
		{"indentation left out of an anchor", code, []Edit{byLine(3, 3, "return 1", "\t\treturn 3")}, call.AnchorMoved,
			func(t *testing.T, w told) []Edit { return []Edit{byLine(3, 3, w.shown(t, "3"), "\t\treturn 3")} },
			"def f(x):\n\tif x:\n\t\treturn 3\n\treturn 2\n"},
		{"numbers copied from a read", code, []Edit{byText("3\t\t\treturn 1\n4\t\treturn 2", "\t\treturn 3")}, call.TextNotFound,
			findShown("\t\treturn 3", "3", "4"), "def f(x):\n\tif x:\n\t\treturn 3\n"},
		{"a number copied into an anchor", code, []Edit{byLine(4, 4, "4\t\treturn 2", "\treturn 3")}, call.AnchorMoved,
			func(t *testing.T, w told) []Edit { return []Edit{byLine(4, 4, w.shown(t, "4"), "\treturn 3")} },
			"def f(x):\n\tif x:\n\t\treturn 1\n\treturn 3\n"},
		{"a range that begins one line too early", fiveLines, []Edit{byLine(2, 2, "three", "3")}, call.AnchorMoved,
			func(_ *testing.T, w told) []Edit {
				return []Edit{byLine(w.span.StartLine, w.span.EndLine, "three", "3")}
			}, "one\ntwo\n3\nfour\nfive\n"},
		{"a range that ends one line behind the file", fiveLines, []Edit{byLine(4, 6, "four", "4\n5")}, call.RangeOutOfFile,
			func(t *testing.T, w told) []Edit {
				m := regexp.MustCompile(`from line 4 on: \{"startLine": 4, "endLine": 5\}`)
				if !m.MatchString(w.text) {
					t.Fatal(w.text)
				}
				return []Edit{byLine(4, 5, "four", "4\n5")}
			}, "one\ntwo\nthree\n4\n5\n"},
		{"the line after the range retyped", page, []Edit{byLine(2, 3, "  <li>Sales “up”</li>", "  <li>All</li>\n</ul>")}, call.RepeatsNextLine,
			func(_ *testing.T, w told) []Edit {
				return []Edit{byLine(w.span.StartLine, w.span.EndLine, "  <li>Sales “up”</li>", "  <li>All</li>\n</ul>")}
			}, "<ul>\n  <li>All</li>\n</ul>\n"},
		{"a wrong quote and the line after the range retyped", page, []Edit{byLine(2, 3, `  <li>Sales "up"</li>`, "  <li>All</li>\n</ul>")}, call.AnchorMoved,
			func(t *testing.T, w told) []Edit {
				return []Edit{byLine(w.span.StartLine, w.span.EndLine, w.shown(t, "2"), "  <li>All</li>\n</ul>")}
			}, "<ul>\n  <li>All</li>\n</ul>\n"},
		{"the last line of the range as its anchor", fiveLines, []Edit{byLine(2, 4, "four", "2\n4")}, call.AnchorIsLastLine,
			func(t *testing.T, w told) []Edit { return []Edit{byLine(2, 4, w.shown(t, "2"), "2\n4")} }, "one\n2\n4\nfive\n"},
		{"numbers from before an insert", "zero\nnew\n" + fiveLines, []Edit{byLine(3, 4, "three", "3\n4")}, call.AnchorMoved,
			func(_ *testing.T, w told) []Edit {
				return []Edit{byLine(w.span.StartLine, w.span.EndLine, "three", "3\n4")}
			}, "zero\nnew\none\ntwo\n3\n4\nfive\n"},
		{"numbers from before a removal, now behind the end", "three\nfour\n", []Edit{byLine(3, 4, "three", "3")}, call.RangeOutOfFile,
			func(t *testing.T, w told) []Edit {
				m := regexp.MustCompile(`range moved with it: \{"startLine": 1, "endLine": 2\}`)
				if !m.MatchString(w.text) {
					t.Fatal(w.text)
				}
				return []Edit{byLine(1, 2, "three", "3")}
			}, "3\n"},
		{"an insert behind its anchor", fiveLines, []Edit{byLine(3, 2, "two", "2b")}, call.AnchorMoved,
			func(t *testing.T, w told) []Edit { return []Edit{byLine(3, 2, w.shown(t, "3"), "2b")} },
			"one\ntwo\n2b\nthree\nfour\nfive\n"},
		{"an insert behind the last line, anchored there", "a\nb\n", []Edit{byLine(3, 2, "b", "c")}, call.AnchorMoved,
			func(t *testing.T, w told) []Edit {
				if !strings.Contains(w.text, `anchor is ""`) {
					t.Fatal(w.text)
				}
				return []Edit{byLine(3, 2, "", "c")}
			}, "a\nb\nc\n"},
		{"text that an earlier call changed", "<h2>3. Gross margin</h2>\n<p>12 %</p>\n", []Edit{byText("<h2>3. Margin</h2>", "<h2>3. Net margin</h2>")},
			call.TextNotFound, findShown("<h2>3. Net margin</h2>", "1"), "<h2>3. Net margin</h2>\n<p>12 %</p>\n"},
		{"several lines of which an earlier call changed one", "a: 1\nb: 20\nc: 3\n", []Edit{byText("a: 1\nb: 2\nc: 3", "a: 4")},
			call.TextNotFound, findShown("a: 4", "1", "2", "3"), "a: 4\n"},
		{"another count than expected", "x\ny\nx\n", []Edit{{Find: ptr("x"), Replace: ptr("z"), All: ptr(true), ExpectedMatches: ptr(3)}}, call.TextNotUnique,
			func(t *testing.T, w told) []Edit {
				if !strings.Contains(w.text, "give expectedMatches 2") {
					t.Fatal(w.text)
				}
				return []Edit{{Find: ptr("x"), Replace: ptr("z"), All: ptr(true), ExpectedMatches: ptr(2)}}
			}, "z\ny\nz\n"},
		{"newlines escaped twice", "a\nb\n", []Edit{byText(`a\nb`, "c")}, call.TextNotFound, findShown("c", "1", "2"), "c\n"},
		{"entities for characters", "<p>a & b</p>\n", []Edit{byText("a &amp; b", "c")}, call.TextNotFound, findShown("<p>c</p>", "1"), "<p>c</p>\n"},
		{"a letter composed otherwise", "cafe\u0301\n", []Edit{byText("café", "tea")}, call.TextNotFound, findShown("tea", "1"), "tea\n"},
		{"lines joined into one", "call(\n  a,\n  b)\n", []Edit{byText("call( a, b)", "call()")}, call.TextNotFound,
			findShown("call()", "1", "2", "3"), "call()\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, refusal := PlanEdits([]byte(c.file), c.wrong)
			if refusal == nil || refusal.Code != c.code {
				t.Fatalf("got %v, want %s", refusal, c.code)
			}
			applies(t, c.file, c.mended(t, whatIsTold(t, refusal)), c.after)
		})
	}
}

// What needs no mending: an excerpt spans CRLF by "\n" and by "\r\n", and its new lines end as the file's do.
func TestAnExcerptSpansTheNewlinesOfTheFile(t *testing.T) {
	for _, find := range []string{"a\nb", "a\r\nb"} {
		applies(t, "a\r\nb\r\n", []Edit{byText(find, "1\n2\n3")}, "1\r\n2\r\n3\r\n")
	}
}
