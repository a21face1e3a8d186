package workspace

import (
	"crypto/sha256"
	"errors"
	"slices"
	"strings"
	"testing"

	"treeline/internal/call"
)

// files is a workspace of a test: content by path.
type files map[string]string

// tree gives the tree and its contents. Every file has revision 3.
func (f files) tree() (*Tree, ContentFunc) {
	var entries []Entry
	for path, content := range f {
		entries = append(entries, NewEntry(path, []byte(content), 3))
	}
	return NewTree(entries), func(path string) ([]byte, error) {
		content, ok := f[path]
		if !ok {
			return nil, errors.New("no such file")
		}
		return []byte(content), nil
	}
}

// wantRefusal checks a refusal's code and that its text carries each of the facts.
func wantRefusal(t *testing.T, got *call.Refusal, code call.Code, facts ...string) {
	t.Helper()
	if got == nil {
		t.Fatalf("not refused; want %s", code)
	}
	if got.Code != code {
		t.Fatalf("refused as %s, want %s: %s", got.Code, code, got.Text)
	}
	for _, fact := range facts {
		if !strings.Contains(got.Text, fact) {
			t.Errorf("the refusal does not say %q: %s", fact, got.Text)
		}
	}
}

// refusalIn gives the refusal that err is, or nil.
func refusalIn(t *testing.T, err error) *call.Refusal {
	t.Helper()
	var r *call.Refusal
	if err != nil && !errors.As(err, &r) {
		t.Fatalf("an error that is no refusal: %v", err)
	}
	return r
}

func TestNewEntryMeasures(t *testing.T) {
	for _, c := range []struct {
		name, content     string
		kind              Kind
		lines, characters int
		length            int64
	}{
		{"empty", "", Text, 0, 0, 0},
		{"closed line", "a\n", Text, 1, 2, 2},
		{"open line", "a\nb", Text, 2, 3, 3},
		{"code points, not bytes", "é→\n", Text, 1, 3, 3},
		{"byte order mark is not counted", BOM + "one\n", Text, 1, 4, 4},
		{"only a byte order mark", BOM, Text, 0, 0, 0},
		{"U+0000", "a\x00b\n", Binary, 0, 0, 4},
		{"not UTF-8", "\xff\xfe", Binary, 0, 0, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := NewEntry("p", []byte(c.content), 9)
			want := Entry{Path: "p", Revision: 9, SHA256: sha256.Sum256([]byte(c.content)), Bytes: int64(len(c.content)), Kind: c.kind,
				Lines: c.lines, Characters: c.characters}
			if e != want || e.Length() != c.length {
				t.Errorf("got %+v of length %d, want %+v of length %d", e, e.Length(), want, c.length)
			}
		})
	}
}

func TestTree(t *testing.T) {
	tree, _ := files{"b/c": "12", "b!": "1", "a": "123", "b/d/e": "", "b0": "1"}.tree()
	paths := func(entries []Entry) (p []string) {
		for _, e := range entries {
			p = append(p, e.Path)
		}
		return p
	}
	if got, want := paths(tree.All()), []string{"a", "b!", "b/c", "b/d/e", "b0"}; !slices.Equal(got, want) {
		t.Errorf("All: %q, want %q", got, want)
	}
	if got, want := paths(tree.Below("b")), []string{"b/c", "b/d/e"}; !slices.Equal(got, want) {
		t.Errorf("Below: %q, want %q", got, want)
	}
	if got := paths(tree.Below("a")); got != nil {
		t.Errorf("Below a file: %q, want none", got)
	}
	for path, want := range map[string]bool{"": true, "b": true, "b/d": true, "a": false, "b/c": false, "b!": false, "c": false} {
		if got := tree.IsFolder(path); got != want {
			t.Errorf("IsFolder(%q) is %v, want %v", path, got, want)
		}
	}
	if tree.Len() != 5 || tree.Bytes() != 7 {
		t.Errorf("%d files, %d bytes; want 5, 7", tree.Len(), tree.Bytes())
	}
	if _, ok := tree.Get("b"); ok {
		t.Error("Get gives a folder")
	}
	if got, want := slices.Collect(tree.names()), []string{"a", "b!", "b", "b/c", "b/d", "b/d/e", "b0"}; !slices.Equal(got, want) {
		t.Errorf("names: %q, want %q", got, want)
	}
	if e, ok := tree.Get("b/c"); !ok || e.Bytes != 2 {
		t.Errorf("Get: %+v, %v", e, ok)
	}
}

func TestCheckRoom(t *testing.T) {
	limits := Limits{WorkspaceBytes: 100, WorkspaceFiles: 3}
	tree, _ := files{"a": strings.Repeat("x", 60), "b": strings.Repeat("x", 20)}.tree()
	for _, c := range []struct {
		name  string
		sizes map[string]int64
		facts []string // nil: fits
	}{
		{"to the byte", map[string]int64{"c": 20}, nil},
		{"one byte over", map[string]int64{"c": 21}, []string{"100 bytes", "80 bytes in 2 files", "+21 bytes", "+1 files", "101 bytes in 3 files"}},
		{"a replacement counts the difference", map[string]int64{"a": 80}, nil},
		{"a replacement over", map[string]int64{"a": 81}, []string{"+21 bytes", "+0 files"}},
		{"files, the whole batch", map[string]int64{"c": 1, "d": 1}, []string{"in 3 files", "+2 bytes", "+2 files", "82 bytes in 4 files"}},
		{"a batch that shrinks one and grows another", map[string]int64{"a": 1, "b": 99}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := limits.CheckRoom(tree.Room(), tree.With(c.sizes))
			if c.facts != nil {
				wantRefusal(t, got, call.WorkspaceFull, c.facts...)
			} else if got != nil {
				t.Errorf("refused: %v", got)
			}
		})
	}
	t.Run("what shrinks is let through even where a limit was lowered", func(t *testing.T) {
		if got := (Limits{WorkspaceBytes: 10, WorkspaceFiles: 1}).CheckRoom(Room{80, 2}, Room{79, 2}); got != nil {
			t.Errorf("refused: %v", got)
		}
	})
	t.Run("megabytes are spelled", func(t *testing.T) {
		wantRefusal(t, DefaultLimits().CheckRoom(Room{}, Room{64*mib + 1, 1}), call.WorkspaceFull, "67108864 bytes (64 MiB)", "2000 files")
	})
}
