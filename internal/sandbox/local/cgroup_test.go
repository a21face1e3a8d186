package local

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"treeline/internal/sandbox"
)

func TestUserCgroupThatCannotBe(t *testing.T) {
	for name, folder := range map[string]string{"missing": "/nowhere/cgroup", "not one": t.TempDir()} {
		d, err := New(Options{Cgroup: folder})
		if err != nil {
			t.Fatal(err)
		}
		var unavailable *sandbox.Unavailable
		if _, err := d.Probe(t.Context()); !errors.As(err, &unavailable) || unavailable.Remedy == "" {
			t.Errorf("%s: %v, want unavailable", name, err)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		if left, err := filepath.Glob(folder + "/treeline-*"); len(left) > 0 || err != nil {
			t.Errorf("%s: left %v, %v", name, left, err)
		}
	}
}

// TestCgroupLimits uses folders in place of the kernel's: what is written where is all that there is to see.
func TestCgroupLimits(t *testing.T) {
	tests := []struct {
		name  string
		files []string // of a new group
		want  map[string]string
	}{
		{"version 2", []string{"memory.max", "memory.swap.max", "memory.oom.group", "pids.max", "cgroup.procs"},
			map[string]string{"memory.max": "68157440", "memory.swap.max": "0", "memory.oom.group": "1", "pids.max": "23", "cgroup.procs": "42"}},
		{"version 1, memory", []string{"memory.limit_in_bytes", "cgroup.procs"},
			map[string]string{"memory.limit_in_bytes": "68157440", "cgroup.procs": "42"}},
		{"version 1, pids", []string{"pids.max", "cgroup.procs"}, map[string]string{"pids.max": "23", "cgroup.procs": "42"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			folder := t.TempDir()
			for _, f := range tt.files {
				if err := os.WriteFile(filepath.Join(folder, f), nil, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			g := &cgroup{folders: []string{folder}}
			if err := limitCgroup(folder, sandbox.Limits{Memory: 1 << 20, Processes: 7}); err != nil {
				t.Fatal(err)
			}
			if err := g.enter(42); err != nil {
				t.Fatal(err)
			}
			for f, want := range tt.want {
				if got, err := os.ReadFile(filepath.Join(folder, f)); err != nil || string(got) != want {
					t.Errorf("%s holds %q, %v, want %q", f, got, err, want)
				}
			}
		})
	}
}

// TestCgroupOfProcesses runs a program in a real group where this user may make one.
func TestCgroupOfProcesses(t *testing.T) {
	parent := "/sys/fs/cgroup/pids"
	if probe, err := os.MkdirTemp(parent, "treeline-test-"); err != nil {
		if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission) && !strings.Contains(err.Error(), "read-only") {
			t.Fatal(err)
		}
		return // no such controller here, or not for this user: TestCgroupLimits and TestUserCgroupThatCannotBe stand
	} else if err := os.Remove(probe); err != nil {
		t.Fatal(err)
	}
	d, err := New(Options{Cgroup: parent})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	s, err := d.start(t.Context(), sandbox.Spec{})
	if err != nil {
		t.Fatal(err)
	}
	folder := s.group.folders[0]
	out, err := s.Run(t.Context(), sandbox.Program{Code: []byte("print(1)"), Output: func(sandbox.Stream, string) {
		procs, err := os.ReadFile(filepath.Join(folder, "cgroup.procs"))
		if n := len(strings.Fields(string(procs))); err != nil || n != 2 {
			t.Errorf("%d processes in the group, %v, want init and the program", n, err)
		}
	}})
	if err != nil || out.Reason != sandbox.OK {
		t.Errorf("got %+v, %v", out, err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(folder); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the group is still there: %v", err)
	}
}
