package sandbox

import (
	"errors"
	"testing"
)

func TestTreeCheck(t *testing.T) {
	a, b := File{Path: "a", Size: 1, SHA256: [32]byte{1}}, File{Path: "b", Size: 2}
	other := a
	other.SHA256[31] = 9
	whole := NewManifest([]File{a, b})
	tests := []struct {
		name string
		tree Tree
		ok   bool
	}{
		{"whole", Tree{Files: []File{a, b}, Manifest: whole}, true},
		{"empty", Tree{Manifest: NewManifest(nil)}, true},
		{"no manifest", Tree{}, false},
		{"one missing", Tree{Files: []File{a}, Manifest: whole}, false},
		{"all missing", Tree{Manifest: whole}, false},
		{"one too many", Tree{Files: []File{a, b}, Manifest: NewManifest([]File{a})}, false},
		{"other bytes", Tree{Files: []File{other, b}, Manifest: whole}, false},
		{"twice", Tree{Files: []File{a, a}, Manifest: NewManifest([]File{a, a})}, false},
		{"out of order", Tree{Files: []File{b, a}, Manifest: NewManifest([]File{b, a})}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := tt.tree.Check()
			var unreadable *TreeUnreadable
			if tt.ok != (err == nil) || err != nil && !errors.As(err, &unreadable) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestTreeFind(t *testing.T) {
	tree := Tree{Files: []File{{Path: "a"}, {Path: "c", Size: 3}}}
	if f, ok := tree.Find("c"); !ok || f.Size != 3 {
		t.Errorf("got %+v, %v", f, ok)
	}
	if _, ok := tree.Find("b"); ok {
		t.Error("found what is not there")
	}
}

func TestManifestTellsPathsApart(t *testing.T) {
	one, two := NewManifest([]File{{Path: "ab"}, {Path: "c"}}), NewManifest([]File{{Path: "a"}, {Path: "bc"}})
	if one == two {
		t.Error("two lists have one manifest")
	}
}

func TestLimitsWithDefaults(t *testing.T) {
	want := DefaultLimits()
	want.Processes = 3
	if got := (Limits{Processes: 3}).WithDefaults(); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
