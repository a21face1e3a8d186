package attacktest

import (
	"maps"
	"strings"
	"testing"
	"time"

	"treeline/internal/sandbox"
)

// left sees that a program left exactly these files.
func left(want map[string]string) func(*testing.T, sandbox.Session, sandbox.Outcome) {
	return func(t *testing.T, s sandbox.Session, _ sandbox.Outcome) {
		t.Helper()
		if _, files := take(t, s); !maps.Equal(files, want) {
			t.Errorf("it left %.2000q, want %q", files, want)
		}
	}
}

// deceive are attacks on whoever reads what was left.
func deceive() []attack {
	return []attack{
		{program: "daemons", within: 10 * time.Second, after: func(t *testing.T, s sandbox.Session, _ sandbox.Outcome) {
			tree, files := take(t, s)
			time.Sleep(100 * time.Millisecond)
			again, _ := take(t, s)
			if files["early"] != "1" || again.Manifest != tree.Manifest {
				t.Errorf("it left %.200q, and something writes on", files)
			}
		}},
		{program: "swap", after: func(t *testing.T, s sandbox.Session, _ sandbox.Outcome) {
			tree, files := take(t, s)
			for path, content := range files {
				if content != "mine" {
					t.Errorf("%q holds %.100q", path, content)
				}
			}
			for _, i := range tree.Ignored {
				if i.Reason != "it is a symbolic link" {
					t.Errorf("%q: %s", i.Path, i.Reason)
				}
			}
			if len(files) != 2 || len(tree.Ignored) != 2 {
				t.Errorf("it left %q and %v, want two files and two links", files, tree.Ignored)
			}
		}},
		{program: "names", after: oddNames},
		{program: "deep", within: 20 * time.Second, after: deepFolders},
	}
}

// oddNames sees that each file has the bytes of its own name, and that what was unpacked reached nothing.
func oddNames(t *testing.T, s sandbox.Session, _ sandbox.Outcome) {
	tree, files := take(t, s)
	for _, name := range []string{"\xff\xfe", "new\nline", strings.Repeat("a", 255), "é", "e\u0301", "Case", "case", "workspace/workspace", "-rf",
		"..x", ".hidden", "tab\t", "back\\slash", " ", "con", "\x01", "\x7f", "quote\"'", "workspace/inputs/x", "%2e%2e", "\u202e"} {
		if files[name] != name {
			t.Errorf("%q holds %q", name, files[name])
		}
		delete(files, name)
	}
	delete(files, "links.zip")
	if want := map[string]string{"unpacked/plain": "1"}; !maps.Equal(files, want) {
		t.Errorf("beside them %q, want %q", files, want)
	}
	if len(tree.Ignored) != 1 || tree.Ignored[0].Path != "unpacked/link" {
		t.Errorf("ignored %v, want the link", tree.Ignored)
	}
	if len(tree.Outside) != 1 || tree.Outside[0] != "escaped" {
		t.Errorf("outside %q, want what was unpacked two folders up", tree.Outside)
	}
}

// deepFolders sees that what can be named is there, and that what is too deep is named once and not kept.
func deepFolders(t *testing.T, s sandbox.Session, _ sandbox.Outcome) {
	began := time.Now()
	tree, files := take(t, s)
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("reading took %v", took)
	}
	want := map[string]string{"top": "1", "d/f": "0", strings.Repeat("d/", 301) + "f": "300", strings.Repeat("d/", 601) + "f": "600",
		strings.Repeat("locked/", 60) + "f": "locked"}
	if !maps.Equal(files, want) {
		t.Errorf("it left %d files, want %d", len(files), len(want))
	}
	if len(tree.Ignored) != 1 || tree.Ignored[0].Path != strings.Repeat("d/", 768)+"d" {
		t.Errorf("ignored %d, want the first folder that is too deep", len(tree.Ignored))
	}
}
