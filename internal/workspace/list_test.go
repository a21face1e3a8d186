package workspace

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"treeline/internal/call"
)

func TestList(t *testing.T) {
	limits := DefaultLimits()
	tree, _ := files{"a.md": "1", "b/c.txt": "2\n3\n", "b/d.md": "4", "b/e/f.md": "", "d.bin": "\x00\x01\x02"}.tree()
	const bounds = `"limits":{"bytes":67108864,"files":2000}}`
	entry := map[string]string{
		"a.md":     `{"path":"a.md","bytes":1,"lines":1,"revision":3}`,
		"b/c.txt":  `{"path":"b/c.txt","bytes":4,"lines":2,"revision":3}`,
		"b/d.md":   `{"path":"b/d.md","bytes":1,"lines":1,"revision":3}`,
		"b/e/f.md": `{"path":"b/e/f.md","bytes":0,"lines":0,"revision":3}`,
		"d.bin":    `{"path":"d.bin","bytes":3,"revision":3}`,
	}
	for _, c := range []struct {
		name  string
		req   ListRequest
		paths []string
		bytes int
	}{
		{"everything", ListRequest{}, []string{"a.md", "b/c.txt", "b/d.md", "b/e/f.md", "d.bin"}, 9},
		{"below a folder", ListRequest{Path: "b"}, []string{"b/c.txt", "b/d.md", "b/e/f.md"}, 5},
		{"one file", ListRequest{Path: "d.bin"}, []string{"d.bin"}, 3},
		{"a star stays within a part", ListRequest{Glob: "*.md"}, []string{"a.md"}, 1},
		{"two stars span parts, also none", ListRequest{Glob: "**/*.md"}, []string{"a.md", "b/d.md", "b/e/f.md"}, 2},
		{"a glob from the root", ListRequest{Path: "b", Glob: "b/*.md"}, []string{"b/d.md"}, 1},
		{"a glob from the folder", ListRequest{Path: "b", Glob: "*.md"}, []string{"b/d.md"}, 1},
		{"braces", ListRequest{Glob: "{a,b/{c,x}}.{md,txt}"}, []string{"a.md", "b/c.txt"}, 5},
		{"stars that meet where braces were stay within a part", ListRequest{Glob: "*{.md,*}"}, []string{"a.md", "d.bin"}, 4},
		{"an empty branch", ListRequest{Glob: "{,b/}*.md"}, []string{"a.md", "b/d.md"}, 2},
		{"a class", ListRequest{Glob: "b/[c-d].*"}, []string{"b/c.txt", "b/d.md"}, 5},
		{"nothing matches", ListRequest{Glob: "*.csv"}, nil, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, data, refusal := tree.List(c.req, limits)
			if refusal != nil {
				t.Fatal(refusal)
			}
			if selected, refusal := tree.Selected(c.req.Path, c.req.Glob); refusal != nil || len(selected) != len(c.paths) {
				t.Errorf("selected %+v, %v", selected, refusal)
			}
			var want []string
			for _, p := range c.paths {
				want = append(want, entry[p])
			}
			wantJSON(t, data, fmt.Sprintf(`{"files":[%s],"totalFiles":%d,"totalBytes":%d,%s`, strings.Join(want, ","), len(c.paths), c.bytes, bounds))
		})
	}
}

func TestListText(t *testing.T) {
	tree, _ := files{"a.md": "1", "b/d.bin": "\x00\x01"}.tree()
	limits := Limits{ListEntries: 1, WorkspaceBytes: 64 * mib, WorkspaceFiles: 2000}
	for _, c := range []struct {
		name string
		tree *Tree
		req  ListRequest
		want string
	}{
		{"the rest is counted", tree, ListRequest{}, "a.md  1 bytes, 1 lines, revision 3\n2 files, 3 bytes; the limits are 2000 files and 67108864 bytes (64 MiB).\n" +
			"[cut here: 1 more files are counted but not listed; name a folder with path, or a glob]"},
		{"a part of the workspace", tree, ListRequest{Path: "b"}, "b/d.bin  2 bytes, not text, revision 3\n1 files, 2 bytes (of 2 files, 3 bytes in the workspace); " +
			"the limits are 2000 files and 67108864 bytes (64 MiB)."},
		{"nothing there", NewTree(nil), ListRequest{}, "The workspace is empty.\n0 files, 0 bytes; the limits are 2000 files and 67108864 bytes (64 MiB)."},
		{"a glob that should cross folders", tree, ListRequest{Glob: "*.bin"}, `No file matches the glob "*.bin". "*" does not cross "/": "**/*.bin" would match 1.` +
			"\n0 files, 0 bytes (of 2 files, 3 bytes in the workspace); the limits are 2000 files and 67108864 bytes (64 MiB)."},
	} {
		t.Run(c.name, func(t *testing.T) {
			text, _, refusal := c.tree.List(c.req, limits)
			if refusal != nil || text != c.want {
				t.Errorf("got  %q, %v\nwant %q", text, refusal, c.want)
			}
		})
	}
	_, data, _ := tree.List(ListRequest{}, limits)
	wantJSON(t, data, `{"files":[{"path":"a.md","bytes":1,"lines":1,"revision":3}],"totalFiles":2,"totalBytes":3,"notListed":1,`+
		`"limits":{"bytes":67108864,"files":2000}}`)
}

func TestListRefuses(t *testing.T) {
	tree, _ := files{"notes/a.md": "1"}.tree()
	for _, c := range []struct {
		name  string
		req   ListRequest
		code  call.Code
		facts []string
	}{
		{"no folder there", ListRequest{Path: "note"}, call.PathNotFound, []string{`"note"`, `"notes"`}},
		{"no path", ListRequest{Path: "notes/"}, call.PathInvalid, []string{`its path is "notes"`}},
		{"the sandbox's root", ListRequest{Path: "workspace"}, call.PathInSandboxForm, []string{`leave "path" out`}},
		{"an open class", ListRequest{Glob: "[a"}, call.InvalidArguments, []string{`"[a"`, "not closed", "**/*.md"}},
		{"an open brace", ListRequest{Glob: "{a,b"}, call.InvalidArguments, []string{"not closed"}},
		{"a backslash at the end", ListRequest{Glob: `a\`}, call.InvalidArguments, []string{"backslash"}},
		{"an absolute glob", ListRequest{Glob: "/notes/*"}, call.InvalidArguments, []string{"root of the workspace"}},
		{"a climbing glob", ListRequest{Glob: "../*"}, call.InvalidArguments, []string{"root of the workspace"}},
		{"a glob of a folder", ListRequest{Glob: "notes/"}, call.InvalidArguments, []string{`"**" at the end`}},
		{"a glob in the sandbox's spelling", ListRequest{Glob: "workspace/**/*.md"}, call.PathInSandboxForm, []string{`use "**/*.md"`}},
		{"braces without end", ListRequest{Glob: strings.Repeat("{a,b}", 90)}, call.InvalidArguments, []string{"too many patterns"}},
		{"longer than any path", ListRequest{Glob: strings.Repeat("a", 513)}, call.InvalidArguments, []string{"longer than any path"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, _, refusal := tree.List(c.req, DefaultLimits())
			wantRefusal(t, refusal, c.code, c.facts...)
		})
	}
	t.Run("the root of an empty workspace is there", func(t *testing.T) {
		if _, _, refusal := NewTree(nil).List(ListRequest{}, DefaultLimits()); refusal != nil {
			t.Error(refusal)
		}
	})
}

func TestGlobTimeIsBounded(t *testing.T) {
	name := strings.Repeat(strings.Repeat("a", 60)+"/", 8) + "b"
	many := files{}
	for i := range 300 {
		many[name+fmt.Sprint(i)] = ""
	}
	tree, _ := many.tree()
	from := time.Now()
	for _, pattern := range []string{strings.Repeat("*a", 120) + "c", strings.Repeat("**/", 60) + "c", strings.Repeat("*{a,a}", 6) + "c",
		strings.Repeat("**/*{a,a}*/", 6) + "c", "{" + strings.Repeat("{a,b},", 20) + "c}", strings.Repeat("**/*a*/", 40) + "c"} {
		if _, _, refusal := tree.List(ListRequest{Glob: pattern}, DefaultLimits()); refusal != nil {
			t.Errorf("%s: %v", pattern, refusal)
		}
	}
	if took := time.Since(from); took > 3*time.Second {
		t.Errorf("took %v", took)
	}
}

func TestPreview(t *testing.T) {
	limits := Limits{PreviewChars: 10}
	for _, c := range []struct {
		name, in, want string
		cut            bool
	}{
		{"short", "0123456789", "0123456789", false},
		{"characters, not bytes", "éééééééééé", "éééééééééé", false},
		{"long", "éé234567890éé", "éé234\n[cut here: 3 characters are left out; the whole is stored: read_result with resultRef \"r1\" reads it]\n890éé\n" +
			"[cut here: this is the head and tail of a longer result, 3 characters between them are left out; the whole is stored: read_result with " +
			"resultRef \"r1\" reads it]", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, cut := limits.Preview(c.in, "r1")
			if got != c.want || cut != c.cut {
				t.Errorf("got  %q, %v\nwant %q", got, cut, c.want)
			}
			if EndsInCutNotice(got) != c.cut {
				t.Errorf("announces itself as cut: %v", !c.cut)
			}
		})
	}
	if got, want := HeadTail("0123456789abc", 4), "01\n[cut here: 9 characters are left out]\nbc"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestEndsInCutNotice(t *testing.T) {
	for content, want := range map[string]bool{
		"":                                 false,
		"plain\n":                          false,
		"a [link]":                         false,
		"x\n[cut here: 3 more]":            true,
		"x [cut here: 3 more]\n":           true,
		"x\r\n[cut here: 3 more] \r\n\n":   true,
		"[cut here: 3 more]\nand on":       false,
		"[cut here: 3 more] and [more]":    false,
		"[cut here: along the dashed line": false,
		"about \"[cut here: \" and\nthe rest, see [1]":                                                     false,
		HeadTail(strings.Repeat("x", 99), 9):                                                               false,
		"12\tabc\n" + (DefaultLimits()).cutLine(ReadLines{Cut: CutLines, NextLine: 3, TotalLines: 9}):      true,
		"12\tabc\n" + (DefaultLimits()).cutLine(ReadLines{Cut: CutCharacters, NextLine: 3, NextColumn: 9}): true,
	} {
		if got := EndsInCutNotice(content); got != want {
			t.Errorf("%q: %v, want %v", content, got, want)
		}
	}
}
