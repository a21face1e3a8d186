package workspace

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"treeline/internal/call"
)

// longText has 120 lines and 5,640 characters or more: past the replacement threshold.
func longText() string {
	var b strings.Builder
	for n := 1; n <= 120; n++ {
		fmt.Fprintf(&b, "line %d with some words to make it long enough\n", n)
	}
	return b.String()
}

// treeOf makes a tree of files given as path, content, path, content, each of revision 5.
func treeOf(files ...string) *Tree {
	var entries []Entry
	for i := 0; i < len(files); i += 2 {
		entries = append(entries, NewEntry(files[i], []byte(files[i+1]), 5))
	}
	return NewTree(entries)
}

func writes(files ...string) []NewFile {
	var list []NewFile
	for i := 0; i < len(files); i += 2 {
		list = append(list, NewFile{files[i], []byte(files[i+1])})
	}
	return list
}

func TestWritesThatArePlanned(t *testing.T) {
	tree := treeOf("a", "old", "b", "same", "long", longText())
	for _, c := range []struct {
		name      string
		files     []NewFile
		changes   call.Changes
		unchanged []string
	}{
		{"a new file", writes("n", "1"), call.Changes{Created: []string{"n"}}, nil},
		{"an empty new file", writes("n", ""), call.Changes{Created: []string{"n"}}, nil},
		{"a short file is replaced", writes("a", "new"), call.Changes{Modified: []string{"a"}}, nil},
		{"by a long one", writes("a", longText()), call.Changes{Modified: []string{"a"}}, nil},
		{"a batch, sorted", writes("z", "1", "a", "new", "c/d", "3"), call.Changes{Created: []string{"c/d", "z"}, Modified: []string{"a"}}, nil},
		{"some of a batch are the same", writes("n", "1", "b", "same"), call.Changes{Created: []string{"n"}}, []string{"b"}},
		{"the same bytes replace nothing", writes("n", "1", "long", longText()), call.Changes{Created: []string{"n"}}, []string{"long"}},
		{"a name is composed", writes("cafe\u0301", "1"), call.Changes{Created: []string{"caf\u00e9"}}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			plan, refusal := PlanWrite(tree, DefaultLimits(), c.files, nil)
			if refusal != nil {
				t.Fatal(refusal)
			}
			want := c.changes.Normal()
			if !slices.Equal(plan.Changes.Created, want.Created) || !slices.Equal(plan.Changes.Modified, want.Modified) ||
				!slices.Equal(plan.Changes.Deleted, want.Deleted) || !slices.Equal(plan.Unchanged, c.unchanged) {
				t.Errorf("got %+v, unchanged %q", plan.Changes, plan.Unchanged)
			}
			if len(plan.Files) != len(want.Created)+len(want.Modified) {
				t.Errorf("stores %d files", len(plan.Files))
			}
		})
	}
}

// refusedWith checks a refusal's code and that its text matches every pattern.
func refusedWith(t *testing.T, refusal *call.Refusal, code call.Code, told ...string) {
	t.Helper()
	if refusal == nil {
		t.Fatalf("not refused, want %s", code)
	}
	if refusal.Code != code {
		t.Fatalf("code %s, want %s: %s", refusal.Code, code, refusal.Text)
	}
	for _, pattern := range told {
		if !regexp.MustCompile("(?s)" + pattern).MatchString(refusal.Text) {
			t.Errorf("text lacks %s: %s", pattern, refusal.Text)
		}
	}
}

func TestWritesThatAreRefused(t *testing.T) {
	tree := treeOf("a", "old", "b", "same", "d/e", "1", "long", longText(), "pic", strings.Repeat("\xff", 4001))
	present := map[string][]byte{"long": []byte(longText())}
	notice := "text\n" + cutNotice("%d characters are left out", 5)
	for _, c := range []struct {
		name  string
		files []NewFile
		code  call.Code
		told  []string
	}{
		{"no file", nil, call.InvalidArguments, []string{`1 to 3`}},
		{"four files", writes("1", "", "2", "", "3", "", "4", ""), call.InvalidArguments, []string{`1 to 3`, `\b4\b`}},
		{"no path", writes("n", "1", "../x", "2"), call.PathInvalid, []string{`\.\./x`}},
		{"one path twice", writes("n", "1", "n", "2"), call.PathClash, []string{`twice`}},
		{"a file where a folder is", writes("d", "1"), call.PathClash, []string{`d/e`}},
		{"a file below a file", writes("a/b", "1"), call.PathClash, nil},
		{"a file below one of the batch", writes("n", "1", "n/m", "2"), call.PathClash, nil},
		{"a look-alike", writes("A", "1"), call.PathLookalike, []string{`"a"`}},
		{"a long file", writes("long", "short\n"), call.WholeFileReplacement, []string{`edit_file`, `120 lines`,
			`"startLine": 1, "endLine": 120, "anchor": "line 1 with some words to make it long enough"`, `read_file`}},
		{"a long file in a batch", writes("n", "1", "long", "2"), call.WholeFileReplacement, nil},
		{"a file that is not text, by its bytes", writes("pic", "1"), call.WholeFileReplacement, []string{`4001 bytes`, `edit_file`, `run_code`}},
		{"the same bytes", writes("a", "old"), call.NoChange, []string{`"a"`}},
		{"all of a batch the same", writes("a", "old", "b", "same"), call.NoChange, []string{`"a", "b"`}},
		{"content that says it was cut", writes("n", notice), call.TrimmedContent, []string{`"n"`, `read_file`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, refusal := PlanWrite(tree, DefaultLimits(), c.files, present)
			refusedWith(t, refusal, c.code, c.told...)
		})
	}
}

func TestTheThresholdIsPassedByOneCharacter(t *testing.T) {
	for length, code := range map[int]call.Code{4000: "", 4001: call.WholeFileReplacement} {
		_, refusal := PlanWrite(treeOf("a", strings.Repeat("é", length)), DefaultLimits(), writes("a", "x"), nil)
		if got := refusal; (got == nil) != (code == "") {
			t.Errorf("%d characters: %v", length, got)
		}
	}
}

func TestAWritePastALimitIsRefusedWhole(t *testing.T) {
	limits := DefaultLimits()
	limits.WorkspaceBytes, limits.WorkspaceFiles = 10, 2
	tree := treeOf("a", "12345")
	_, refusal := PlanWrite(tree, limits, writes("b", "123456"), nil)
	refusedWith(t, refusal, call.WorkspaceFull, `\b10 bytes`, `\b5 bytes`, `\b11 bytes`)
	_, refusal = PlanWrite(tree, limits, writes("b", "1", "c", "1"), nil)
	refusedWith(t, refusal, call.WorkspaceFull, `\b2 files`, `\b3 files`)
	if _, refusal = PlanWrite(tree, limits, writes("a", "1234567890"), nil); refusal != nil {
		t.Error(refusal)
	}
	_, refusal = PlanEdit(tree, limits, "a", []byte("12345"), []Edit{byText("5", "567890a")})
	refusedWith(t, refusal, call.WorkspaceFull, `\b11 bytes`)
	_, refusal = PlanEdit(tree, limits, "a", []byte("12345"), []Edit{byTextAll("5", strings.Repeat("x", 1000))})
	refusedWith(t, refusal, call.WorkspaceFull)
}

func TestReplacingALongFileByOneEditNeedsARead(t *testing.T) {
	long := longText()
	whole := byLine(1, 120, "line 1 with some words to make it long enough", "new\n")
	for _, c := range []struct {
		name     string
		lastRead int64
		edits    []Edit
		code     call.Code
	}{
		{"never read", 0, []Edit{whole}, call.ReadFirst},
		{"read before it changed", 4, []Edit{whole}, call.ReadFirst},
		{"read since", 6, []Edit{whole}, ""},
		{"an insert beside it makes no difference", 0, []Edit{whole, byLine(121, 120, "", "more")}, call.ReadFirst},
		{"by text", 0, []Edit{byText(long, "new\n")}, call.ReadFirst},
		{"by text, read since", 6, []Edit{byText(long, "new\n")}, ""},
		{"all lines but one", 0, []Edit{byLine(2, 120, "line 2 with some words to make it long enough", "new\n")}, ""},
		{"an overlap comes first", 0, []Edit{whole, byLine(3, 3, "", "x")}, call.RangesOverlap},
		{"the end of the file comes first", 0, []Edit{byLine(1, 121, "", "x")}, call.RangeOutOfFile},
	} {
		t.Run(c.name, func(t *testing.T) {
			entry := NewEntry("a.md", []byte(long), 5)
			entry.LastRead = c.lastRead
			after, refusal := PlanEdit(NewTree([]Entry{entry}), DefaultLimits(), "a.md", []byte(long), c.edits)
			switch {
			case c.code == "" && refusal != nil:
				t.Fatal(refusal)
			case c.code == "" && len(after) == 0:
				t.Fatal("no file")
			case c.code != "":
				refusedWith(t, refusal, c.code)
			}
		})
	}
	_, refusal := PlanEdit(treeOf("a.md", long), DefaultLimits(), "a.md", []byte(long), []Edit{whole})
	refusedWith(t, refusal, call.ReadFirst, `read_file`, `120 lines`, `"a\.md"`)
	if _, refusal := PlanEdit(treeOf("a", "short\n"), DefaultLimits(), "a", []byte("short\n"), []Edit{byLine(1, 1, "short", "x")}); refusal != nil {
		t.Errorf("a short file: %v", refusal)
	}
}

func TestDeletes(t *testing.T) {
	tree := treeOf("a", "1", "b", "2", "d/e", "3", "long", longText())
	failed := map[string]bool{"long": true, "a": true}
	got, refusal := PlanDelete(tree, DefaultLimits(), []string{"b", "a"}, failed)
	if refusal != nil || !slices.Equal(got, []string{"a", "b"}) {
		t.Fatalf("%q, %v", got, refusal)
	}
	if got, refusal = PlanDelete(tree, DefaultLimits(), []string{"long"}, nil); refusal != nil || !slices.Equal(got, []string{"long"}) {
		t.Fatalf("a long file that nothing tried to write: %q, %v", got, refusal)
	}
	for _, c := range []struct {
		name  string
		paths []string
		code  call.Code
		told  []string
	}{
		{"none", nil, call.InvalidArguments, nil},
		{"too many", slices.Repeat([]string{"a"}, 21), call.InvalidArguments, []string{`1 to 20`}},
		{"no path", []string{"/a"}, call.PathInvalid, nil},
		{"twice", []string{"a", "a"}, call.PathClash, nil},
		{"one that is not there", []string{"a", "nope"}, call.PathNotFound, []string{`nope`}},
		{"a folder", []string{"d"}, call.PathIsFolder, []string{`d/e`}},
		{"after a refused write", []string{"b", "long"}, call.DeleteAfterRefusedWrite, []string{`"long"`, `edit_file`, `"endLine": 120`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, refusal := PlanDelete(tree, DefaultLimits(), c.paths, failed)
			refusedWith(t, refusal, c.code, c.told...)
		})
	}
}

func TestMoves(t *testing.T) {
	tree := treeOf("a", "1", "b", "2", "d/e", "3", "D2/x", "4", "long", longText())
	failed := map[string]bool{"long": true, "a": true}
	for _, c := range []struct {
		name, from, to string
		code           call.Code
	}{
		{"to a new name", "a", "n/m", ""},
		{"by case alone", "a", "A", ""},
		{"a folder by case alone", "D2/x", "d2/x", ""},
		{"below its own old name", "a", "a/b", ""},
		{"onto its own folder", "d/e", "d", ""},
		{"the same name", "a", "a", call.NoChange},
		{"the same name, composed", "a", "a", call.NoChange},
		{"onto a file", "a", "b", call.PathClash},
		{"onto a folder", "a", "d", call.PathClash},
		{"below another file", "a", "b/c", call.PathClash},
		{"onto a look-alike of another", "a", "B", call.PathLookalike},
		{"into a look-alike folder", "a", "D/f", call.PathLookalike},
		{"from nowhere", "nope", "n", call.PathNotFound},
		{"from nowhere to the same", "nope", "nope", call.PathNotFound},
		{"a folder", "d", "n", call.PathIsFolder},
		{"from no path", "/a", "n", call.PathInvalid},
		{"to no path", "a", "n/", call.PathInvalid},
		{"to the sandbox's spelling", "a", "workspace/n", call.PathInSandboxForm},
		{"after a refused write", "long", "n", call.DeleteAfterRefusedWrite},
	} {
		t.Run(c.name, func(t *testing.T) {
			plan, refusal := PlanMove(tree, DefaultLimits(), c.from, c.to, failed)
			if c.code != "" {
				refusedWith(t, refusal, c.code)
				return
			}
			if refusal != nil {
				t.Fatal(refusal)
			}
			if plan.From != c.from || plan.To != c.to || !slices.Equal(plan.Changes.Created, []string{c.to}) ||
				!slices.Equal(plan.Changes.Deleted, []string{c.from}) || len(plan.Changes.Modified) != 0 {
				t.Errorf("got %+v", plan)
			}
		})
	}
}
