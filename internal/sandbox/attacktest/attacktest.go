// Package attacktest attacks sandbox drivers: programs that try to get out of the sandbox, to get at what is not theirs, to
// use up the machine, and to deceive whoever reads what they leave. Each attack is held to exactly what it may get, and after
// each the driver must run the next program as if nothing had been.
package attacktest

import (
	"embed"
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/elastic/go-seccomp-bpf/arch"

	"treeline/internal/sandbox"
	"treeline/internal/sandbox/sandboxtest"
)

//go:embed testdata/*.py
var programs embed.FS

// attack is one program and the most that may come of it. An attack that gets nothing prints "end" alone.
type attack struct {
	// program is a file of testdata, without its ending.
	program string
	put     map[string]string
	limits  sandbox.Limits

	reasons []sandbox.Reason // how it may end; OK if empty
	says    string           // the whole of standard output; "end\n" if empty
	within  time.Duration    // from start to end; a minute if 0
	// during is told once, as soon as the program has printed something.
	during func(t *testing.T, s sandbox.Session)
	// after looks at what the program left. Without it the tree must be whole.
	after func(t *testing.T, s sandbox.Session, out sandbox.Outcome)
}

// Run attacks a driver in every way. The environment of the process must be free to be changed.
func Run(t *testing.T, d sandbox.Driver) {
	t.Helper()
	h := newHost(t)
	for _, group := range []struct {
		name    string
		attacks []attack
	}{{"reach", reach()}, {"exhaust", exhaust()}, {"deceive", deceive()}} {
		t.Run(group.name, func(t *testing.T) {
			for _, a := range group.attacks {
				t.Run(a.program, func(t *testing.T) {
					a.check(t, d, h)
					worksOn(t, d)
				})
			}
		})
	}
	t.Run("at once", func(t *testing.T) { testNeighbours(t, d, h) })
	t.Run("apart", func(t *testing.T) { testChance(t, d) })
	t.Run("from outside", func(t *testing.T) { testOutside(t, d) })
	h.expectUntouched(t)
}

// source gives a program as it is run, with what is on the host written into it.
func source(t *testing.T, program string, facts map[string]any) []byte {
	t.Helper()
	info, err := arch.GetInfo("")
	if err != nil {
		t.Fatal(err)
	}
	read := func(name string) string {
		b, err := programs.ReadFile("testdata/" + name + ".py")
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	written := func(v any) string {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return string(b) // what is JSON here, numbers and strings, is Python too
	}
	prelude := strings.NewReplacer("@CALLS@", written(info.SyscallNames), "@HOST@", written(facts)).Replace(read("attack"))
	return []byte(prelude + read(program))
}

// check runs the attack and looks at all that it got.
func (a attack) check(t *testing.T, d sandbox.Driver, h *host) {
	t.Helper()
	s := sandboxtest.Start(t, d, a.limits)
	for path, content := range a.put {
		sandboxtest.Put(t, s, path, content)
	}
	facts := maps.Clone(h.facts)
	facts["first"] = firstProcess(s)
	told := false
	began := time.Now()
	out, err := s.Run(t.Context(), sandbox.Program{Code: source(t, a.program, facts), Output: func(stream sandbox.Stream, _ string) {
		if stream == sandbox.Stdout && !told && a.during != nil {
			told = true
			a.during(t, s)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	took := time.Since(began)
	reasons := a.reasons
	if len(reasons) == 0 {
		reasons = []sandbox.Reason{sandbox.OK}
	}
	if !slices.Contains(reasons, out.Reason) {
		t.Errorf("it ended as %s (exit code %d), want %v", out.Reason, out.ExitCode, reasons)
	}
	if want := or(a.says, "end\n"); a.says != anything && out.Stdout.Head+out.Stdout.Tail != want {
		t.Errorf("it printed %.4000q, want %q; on standard error %.2000q", out.Stdout.Head+out.Stdout.Tail, want, out.Stderr.Head)
	}
	if within := or(a.within, time.Minute); took > within {
		t.Errorf("it took %v, want at most %v", took, within)
	}
	if a.after != nil {
		a.after(t, s, out)
		return
	}
	take(t, s)
}

// anything is the says of an attack whose output is looked at by its after, or does not matter.
const anything = "*"

func or[T comparable](v, otherwise T) T {
	var zero T
	if v == zero {
		return otherwise
	}
	return v
}

// take takes the tree and sees that it is what its manifest says, and that its bytes can be read.
func take(t *testing.T, s sandbox.Session) (sandbox.Tree, map[string]string) {
	t.Helper()
	tree, err := s.Take(t.Context())
	if err != nil {
		t.Fatalf("take: %v", err)
	}
	if err := tree.Check(); err != nil {
		t.Error(err)
	}
	return tree, sandboxtest.Contents(t, s, tree)
}

// worksOn sees that the driver runs the next program as it did the first.
func worksOn(t *testing.T, d sandbox.Driver) {
	t.Helper()
	s := sandboxtest.Start(t, d, sandbox.Limits{})
	sandboxtest.Put(t, s, "workspace/kept", "kept")
	out, err := s.Run(t.Context(), sandbox.Program{Code: source(t, "next", map[string]any{})})
	if err != nil {
		t.Fatalf("the next run: %v", err)
	}
	if out.Reason != sandbox.OK || out.Stdout.Head != "end\n" {
		t.Errorf("the next run ended as %s and printed %q, %q", out.Reason, out.Stdout.Head, out.Stderr.Head)
	}
	if _, files := take(t, s); !maps.Equal(files, map[string]string{"kept": "kept", "next": "works"}) {
		t.Errorf("the next run left %q", files)
	}
}

// firstProcess gives the host's process id of the first process of the session's, where the driver tells; else this
// process's, which a program must not reach either.
func firstProcess(s sandbox.Session) int {
	if f, ok := s.(interface{ InitPID() int }); ok {
		return f.InitPID()
	}
	return os.Getpid()
}
