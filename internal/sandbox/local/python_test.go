package local

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestBindSet(t *testing.T) {
	root := t.TempDir()
	for _, folder := range []string{"usr/lib/python3", "usr/lib-extra", "opt/py/bin", "opt/py/lib"} {
		if err := os.MkdirAll(filepath.Join(root, folder), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "opt/py/bin/python3.12"), nil, 0o755); err != nil {
		t.Fatal(err)
	}
	for link, target := range map[string]string{
		"lib": "usr/lib", "python": "opt/py/bin/python3", "opt/py/bin/python3": "python3.12", "loop": "loop",
	} {
		if err := os.Symlink(target, filepath.Join(root, link)); err != nil {
			t.Fatal(err)
		}
	}
	tests := []struct {
		name  string
		add   []string
		paths []string
		links map[string]string
	}{
		{"a folder", []string{"usr/lib"}, []string{"usr/lib"}, nil},
		{"what lies in another is dropped", []string{"usr/lib/python3", "usr/lib", "usr/lib-extra"}, []string{"usr/lib", "usr/lib-extra"}, nil},
		{"a linked folder", []string{"lib/python3"}, []string{"usr/lib/python3"}, map[string]string{"lib": "usr/lib"}},
		{"a chain of links", []string{"python"}, []string{"opt/py/bin/python3.12"},
			map[string]string{"python": "opt/py/bin/python3", "opt/py/bin/python3": "python3.12"}},
		{"a link within a mount needs none", []string{"python", "opt/py"}, []string{"opt/py"}, map[string]string{"python": "opt/py/bin/python3"}},
		{"what is not there", []string{"nowhere", "usr/nowhere"}, nil, nil},
		{"a loop", []string{"loop"}, nil, map[string]string{"loop": "loop"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := &bindSet{links: map[string]string{}}
			for _, path := range tt.add {
				s.add(filepath.Join(root, path))
			}
			var want []string
			for _, path := range tt.paths {
				want = append(want, filepath.Join(root, path))
			}
			if got := s.paths(); !slices.Equal(got, want) {
				t.Errorf("paths %q, want %q", got, want)
			}
			links := map[string]string{}
			for link, target := range tt.links {
				links[filepath.Join(root, link)] = target
			}
			if !maps.Equal(s.links, links) {
				t.Errorf("links %q, want %q", s.links, links)
			}
		})
	}
}

func TestFindRuntimeGoesOnToOneThatRuns(t *testing.T) {
	shim := filepath.Join(t.TempDir(), "python3")
	if err := os.WriteFile(shim, []byte("#!/bin/sh\necho no such version >&2\nexit 127\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	got, err := findRuntime([]string{"/nowhere/python3", shim, "/usr/bin/python3"})
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range got.Binds {
		if info, err := os.Lstat(path); err != nil || info.Mode()&os.ModeSymlink != 0 {
			t.Errorf("%s is to be mounted and is a link or missing: %v", path, err)
		}
	}
}
