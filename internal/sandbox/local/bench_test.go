package local

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"treeline/internal/sandbox"
)

func BenchmarkPrint(b *testing.B) {
	d := newDriver(b)
	for b.Loop() {
		runOnce(b, d, "print(1)", nil)
	}
}

func BenchmarkBarePrint(b *testing.B) {
	python := interpreter(b)
	for b.Loop() {
		bare(b, python)
	}
}

func BenchmarkTree(b *testing.B) {
	for _, files := range []int{10, 1000} {
		b.Run(fmt.Sprint(files), func(b *testing.B) {
			d := newDriver(b)
			content := bytes.Repeat([]byte("x"), 4096)
			for b.Loop() {
				runOnce(b, d, "print(1)", func(s *Session) {
					for i := range files {
						put(b, s, fmt.Sprintf("workspace/d%d/f%d", i%10, i), string(content))
					}
				})
			}
		})
	}
}

// BenchmarkRatio reports how many times as long a sealed print(1) takes as a bare one, in medians of turns taken
// alternately.
func BenchmarkRatio(b *testing.B) {
	d, python := newDriver(b), interpreter(b)
	var sealed, plain []time.Duration
	for b.Loop() {
		began := time.Now()
		runOnce(b, d, "print(1)", nil)
		sealed = append(sealed, time.Since(began))
		began = time.Now()
		bare(b, python)
		plain = append(plain, time.Since(began))
	}
	slices.Sort(sealed)
	slices.Sort(plain)
	b.ReportMetric(float64(sealed[len(sealed)/2])/float64(plain[len(plain)/2]), "sealed/bare")
}

func interpreter(t testing.TB) string {
	t.Helper()
	report, err := newDriver(t).Probe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return report.Python.Path
}

func bare(t testing.TB, python string) {
	t.Helper()
	cmd := exec.Command(python, "-c", "print(1)")
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	out, err := cmd.Output()
	if err != nil || string(out) != "1\n" {
		t.Fatalf("bare python: %q %v", out, err)
	}
}

func newDriver(t testing.TB) *Driver {
	t.Helper()
	d, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

func runOnce(t testing.TB, d *Driver, code string, fill func(*Session)) (sandbox.Outcome, sandbox.Tree) {
	t.Helper()
	s, err := d.start(t.Context(), sandbox.Spec{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if fill != nil {
		fill(s)
	}
	out, err := s.Run(t.Context(), sandbox.Program{Code: []byte(code)})
	if err != nil || out.Reason != sandbox.OK {
		t.Fatalf("run: %+v, %v", out, err)
	}
	tree, err := s.Take(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return out, tree
}

func put(t testing.TB, s sandbox.Session, path, content string) {
	t.Helper()
	if err := s.Put(t.Context(), path, strings.NewReader(content)); err != nil {
		t.Fatal(err)
	}
}
