// Package sandboxtest is the conformance suite of sandbox drivers: what a program may rely on, whichever driver runs it.
package sandboxtest

import (
	"errors"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"treeline/internal/sandbox"
)

// Case is one program and what must come of it. Fields left at their zero are not looked at, but for Reason.
type Case struct {
	Name   string
	Put    map[string]string // by path below the working folder
	Code   string
	Limits sandbox.Limits

	Reason   sandbox.Reason // OK if empty
	ExitCode int            // looked at where Reason is Raised
	Signal   int
	Stdout   string   // the whole of it
	Says     []string // parts of standard output
	Stderr   []string // parts of standard error
	Silent   []string // what neither stream may hold

	Tree    map[string]string // the whole tree by path below workspace/
	Ignored []string          // the paths of all that is ignored
	Outside []string          // all that is left outside
	Within  time.Duration     // how long the run may take
}

// Run runs the whole suite on a driver.
func Run(t *testing.T, d sandbox.Driver) {
	t.Helper()
	for _, group := range []struct {
		name  string
		cases []Case
	}{
		{"outcomes", outcomes()}, {"output", output()}, {"tree", tree()}, {"standard library", standardLibrary()},
		{"seal", seal()}, {"limits", limits()},
	} {
		t.Run(group.name, func(t *testing.T) {
			for _, c := range group.cases {
				t.Run(c.Name, func(t *testing.T) { c.check(t, d) })
			}
		})
	}
	t.Run("libraries", func(t *testing.T) { testLibraries(t, d) })
	t.Run("session", func(t *testing.T) { testSession(t, d) })
}

// check runs the case in a session of its own.
func (c Case) check(t *testing.T, d sandbox.Driver) {
	t.Helper()
	s := Start(t, d, c.Limits)
	for path, content := range c.Put {
		Put(t, s, path, content)
	}
	out, err := s.Run(t.Context(), sandbox.Program{Code: []byte(c.Code)})
	if err != nil {
		t.Fatal(err)
	}
	c.checkOutcome(t, out)
	tree, err := s.Take(t.Context())
	if err != nil {
		t.Fatalf("take: %v", err)
	}
	if err := tree.Check(); err != nil {
		t.Error(err)
	}
	c.checkTree(t, s, tree)
}

func (c Case) checkOutcome(t *testing.T, out sandbox.Outcome) {
	t.Helper()
	want := c.Reason
	if want == "" {
		want = sandbox.OK
	}
	if out.Reason != want {
		t.Fatalf("reason %s, want %s; %s%s", out.Reason, want, out.Stdout.Head, out.Stderr.Head)
	}
	if want == sandbox.Raised && (out.ExitCode != c.ExitCode || out.Signal != c.Signal) {
		t.Errorf("exit code %d, signal %d, want %d, %d", out.ExitCode, out.Signal, c.ExitCode, c.Signal)
	}
	if c.Stdout != "" && out.Stdout.Head != c.Stdout {
		t.Errorf("stdout %q, want %q; stderr %q", out.Stdout.Head, c.Stdout, out.Stderr.Head)
	}
	stdout, stderr := out.Stdout.Head+out.Stdout.Tail, out.Stderr.Head+out.Stderr.Tail
	for _, part := range c.Says {
		if !strings.Contains(stdout, part) {
			t.Errorf("stdout lacks %q: %.2000q; stderr %.2000q", part, stdout, stderr)
		}
	}
	for _, part := range c.Stderr {
		if !strings.Contains(stderr, part) {
			t.Errorf("stderr lacks %q: %.2000q", part, stderr)
		}
	}
	for _, part := range c.Silent {
		if strings.Contains(stdout+stderr, part) {
			t.Errorf("output holds %q", part)
		}
	}
	if c.Within > 0 && out.Duration > c.Within {
		t.Errorf("took %v, want at most %v", out.Duration, c.Within)
	}
}

func (c Case) checkTree(t *testing.T, s sandbox.Session, tree sandbox.Tree) {
	t.Helper()
	if c.Tree != nil {
		if got := Contents(t, s, tree); !maps.Equal(got, c.Tree) {
			t.Errorf("tree %.2000q, want %.2000q", got, c.Tree)
		}
	}
	var ignored []string
	for _, i := range tree.Ignored {
		ignored = append(ignored, i.Path)
		if i.Reason == "" {
			t.Errorf("%q is ignored for no reason", i.Path)
		}
	}
	if c.Ignored != nil && !slices.Equal(ignored, c.Ignored) {
		t.Errorf("ignored %q, want %q", ignored, c.Ignored)
	}
	if c.Outside != nil && !slices.Equal(tree.Outside, c.Outside) {
		t.Errorf("outside %q, want %q", tree.Outside, c.Outside)
	}
}

// Start starts a session that ends with the test.
func Start(t testing.TB, d sandbox.Driver, l sandbox.Limits) sandbox.Session {
	t.Helper()
	s, err := d.Start(t.Context(), sandbox.Spec{Label: t.Name(), Limits: l})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

// Put puts a file into a session.
func Put(t testing.TB, s sandbox.Session, path, content string) {
	t.Helper()
	if err := s.Put(t.Context(), path, strings.NewReader(content)); err != nil {
		t.Fatal(err)
	}
}

// Contents reads every file of a tree.
func Contents(t testing.TB, s sandbox.Session, tree sandbox.Tree) map[string]string {
	t.Helper()
	got := map[string]string{}
	for _, f := range tree.Files {
		r, err := s.Open(t.Context(), f.Path)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(r)
		if err := errors.Join(err, r.Close()); err != nil {
			t.Fatal(err)
		}
		got[f.Path] = string(body)
	}
	return got
}

func testLibraries(t *testing.T, d sandbox.Driver) {
	report, err := d.Probe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(report.Python.Version, "3.") || report.Python.Path == "" {
		t.Errorf("python %+v", report.Python)
	}
	cases := libraries()
	for _, library := range slices.Sorted(maps.Keys(cases)) {
		if report.Python.Libraries[library] != "" {
			t.Run(library, func(t *testing.T) { cases[library].check(t, d) })
		}
	}
}
