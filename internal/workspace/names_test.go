package workspace

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"treeline/internal/call"
)

func TestCheckNames(t *testing.T) {
	tree, _ := files{"a": "1", "d/e": "2", "Docs/Plan.md": "3", "straße.txt": "4", "ﬁle": "5", "only/one": "6"}.tree()
	for _, c := range []struct {
		name    string
		paths   []string
		leaving []string
		code    call.Code // "" is none
		facts   []string
	}{
		{"a new name", []string{"b", "d/f", "n/m"}, nil, "", nil},
		{"a file that is there", []string{"a", "d/e"}, nil, "", nil},
		{"below a file", []string{"a/b"}, nil, call.PathClash, []string{`"a" is a file`, `"a/b"`}},
		{"deep below a file", []string{"d/e/f/g"}, nil, call.PathClash, []string{`"d/e" is a file`}},
		{"where a folder is", []string{"d"}, nil, call.PathClash, []string{`"d" is a folder`, `"d/e"`}},
		{"twice in a batch", []string{"n", "m", "n"}, nil, call.PathClash, []string{`"n"`, "twice"}},
		{"file and folder in a batch", []string{"n", "n/m"}, nil, call.PathClash, []string{`"n"`, `"n/m"`}},
		{"folder and file in a batch", []string{"n/m/o", "n/m"}, nil, call.PathClash, []string{`"n/m"`, `"n/m/o"`}},
		{"but for case", []string{"A"}, nil, call.PathLookalike, []string{`"A"`, `"a"`}},
		{"a folder but for case", []string{"docs/new.md"}, nil, call.PathLookalike, []string{`"docs"`, `"Docs"`, `Use "Docs/new.md"`}},
		{"in a folder, but for case", []string{"Docs/plan.md"}, nil, call.PathLookalike, []string{`"Docs/Plan.md"`}},
		{"a file like a folder", []string{"DOCS"}, nil, call.PathLookalike, []string{`"Docs"`}},
		{"sharp s folds", []string{"STRASSE.TXT"}, nil, call.PathLookalike, []string{`"straße.txt"`}},
		{"a ligature is compatible", []string{"File"}, nil, call.PathLookalike, []string{`"ﬁle"`}},
		{"full-width letters are compatible", []string{"ａ"}, nil, call.PathLookalike, []string{`"a"`}},
		{"accents tell apart", []string{"á"}, nil, "", nil},
		{"alike in a batch", []string{"New", "new"}, nil, call.PathLookalike, []string{`"New"`, `"new"`, "in this call"}},
		{"folders alike in a batch", []string{"New/x", "new/y"}, nil, call.PathLookalike, []string{`"New"`, `"new"`}},
		{"one new folder in a batch", []string{"New/x", "New/y"}, nil, "", nil},
		{"renamed by case", []string{"A"}, []string{"a"}, "", nil},
		{"the folder of the only file renamed by case", []string{"Only/one"}, []string{"only/one"}, "", nil},
		{"a file becomes its own folder", []string{"a/b"}, []string{"a"}, "", nil},
		{"what leaves does not excuse others", []string{"docs/x"}, []string{"a"}, call.PathLookalike, []string{`"Docs"`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := tree.CheckNames(c.paths, c.leaving...)
			if c.code != "" {
				wantRefusal(t, got, c.code, c.facts...)
			} else if got != nil {
				t.Errorf("refused: %v", got)
			}
		})
	}
	t.Run("lookalikes that a run made stay usable", func(t *testing.T) {
		tree, _ := files{"b": "1", "B": "2", "f/x": "3", "F/x": "4"}.tree()
		if got := tree.CheckNames([]string{"b", "B", "F/y", "f/z"}); got != nil {
			t.Errorf("refused: %v", got)
		}
	})
}

func TestFind(t *testing.T) {
	tree, _ := files{"report.md": "x", "zzz.bin": "y", "notes/todo.txt": "z", "Makefile": "m", "data/2024/sales.csv": "1", "data/2025/sales.csv": "2",
		"q1": "", "q2": "", "q3": ""}.tree()
	for _, c := range []struct {
		name, path string
		code       call.Code
		first      string // the closest name
		facts      []string
	}{
		{"letters swapped", "reprot.md", call.PathNotFound, `"report.md"`, []string{`"reprot.md"`, "list_files names all 9"}},
		{"other case", "makefile", call.PathNotFound, `"Makefile"`, nil},
		{"in another folder", "todo.txt", call.PathNotFound, `"notes/todo.txt"`, nil},
		{"in two other folders", "sales.csv", call.PathNotFound, `"data/2024/sales.csv", "data/2025/sales.csv"`, nil},
		{"other ending", "report.txt", call.PathNotFound, `"report.md"`, nil},
		{"a folder", "notes", call.PathIsFolder, `"notes/todo.txt"`, []string{`"notes" is a folder`}},
		{"folders in a folder", "data", call.PathIsFolder, `"data/2024/sales.csv"`, nil},
		{"below a file", "report.md/x", call.PathNotFound, "", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, refusal := tree.Find(c.path)
			wantRefusal(t, refusal, c.code, c.facts...)
			_, named, _ := strings.Cut(refusal.Text, ": ")
			if c.code == call.PathIsFolder {
				_, named, _ = strings.Cut(refusal.Text, "It holds ")
			}
			if !strings.HasPrefix(named, c.first) {
				t.Errorf("names %s, want first %s", named, c.first)
			}
		})
	}
	t.Run("the file itself", func(t *testing.T) {
		if e, refusal := tree.Find("q2"); refusal != nil || e.Path != "q2" {
			t.Errorf("%+v, %v", e, refusal)
		}
	})
	t.Run("an empty workspace", func(t *testing.T) {
		_, refusal := NewTree(nil).Find("a")
		wantRefusal(t, refusal, call.PathNotFound, `"a"`, "the workspace is empty")
	})
	t.Run("an input of a run", func(t *testing.T) {
		_, refusal := tree.Find("inputs/files/sales.csv")
		wantRefusal(t, refusal, call.PathNotFound, `"inputs/files/sales.csv"`, "run_code", "only while code runs")
	})
	t.Run("few files are all named", func(t *testing.T) {
		small, _ := files{"x": "", "y": ""}.tree()
		_, refusal := small.Find("nope")
		wantRefusal(t, refusal, call.PathNotFound, `The workspace holds "x", "y".`)
	})
	t.Run("a folder not there names folders too", func(t *testing.T) {
		_, refusal := tree.Folder("note")
		wantRefusal(t, refusal, call.PathNotFound, `"note"`, `"notes"`)
	})
	t.Run("a folder with much in it", func(t *testing.T) {
		many := files{}
		for i := range 30 {
			many[fmt.Sprintf("m/%02d", i)] = ""
		}
		tree, _ := many.tree()
		_, refusal := tree.Find("m")
		wantRefusal(t, refusal, call.PathIsFolder, `"m/00"`, `"m/09"`, "and 20 more")
	})
}

func TestFindIsBounded(t *testing.T) {
	many := files{}
	for i := range 2000 {
		many[fmt.Sprintf("%s/%s%04d", strings.Repeat("é", 100), strings.Repeat("aé", 80), i)] = ""
	}
	tree, _ := many.tree()
	from := time.Now()
	_, refusal := tree.Find(strings.Repeat("é", 101) + "/" + strings.Repeat("éa", 80))
	if refusal == nil || time.Since(from) > 2*time.Second {
		t.Errorf("%v after %v", refusal, time.Since(from))
	}
}

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"abc", "abc", 0}, {"abc", "abd", 1}, {"abc", "ab", 1}, {"ab", "abc", 1}, {"reprot", "report", 1}, {"", "abc", 3},
		{"abcdef", "uvwxyz", 5}, {"kitten", "sitting", 3}, {"abc", "abcdefgh", 5}, {"a", "abcdefgh", 5}, {"bcdefg", "abcdef", 2},
	} {
		if got := distance([]rune(c.a), []rune(c.b), 4); got != c.want {
			t.Errorf("distance(%q, %q) is %d, want %d", c.a, c.b, got, c.want)
		}
	}
}
