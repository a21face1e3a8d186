package attacktest

import (
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"treeline/internal/sandbox"
	"treeline/internal/sandbox/sandboxtest"
)

// testNeighbours has one run look for what another leaves lying about at the same time, and start while another uses up
// what one user has of the kernel's.
func testNeighbours(t *testing.T, d sandbox.Driver, h *host) {
	t.Run("spy", func(t *testing.T) {
		beside(t, d, h, "neighbour", func(first int) {
			facts := maps.Clone(h.facts)
			facts["neighbour"] = first
			attack{program: "spy"}.check(t, d, &host{facts: facts})
		})
		worksOn(t, d)
	})
	t.Run("in_flight", func(t *testing.T) {
		beside(t, d, h, "in_flight", func(int) {
			for range 3 {
				worksOn(t, d)
			}
		})
	})
}

// beside does something while a program runs that has printed "end" and goes on.
func beside(t *testing.T, d sandbox.Driver, h *host, program string, do func(first int)) {
	t.Helper()
	s := sandboxtest.Start(t, d, sandbox.Limits{})
	up := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		var said string
		out, err := s.Run(t.Context(), sandbox.Program{Code: source(t, program, h.facts), Output: func(_ sandbox.Stream, text string) {
			if said += text; strings.HasSuffix(said, "end\n") {
				close(up)
			}
		}})
		if err != nil || out.Reason != sandbox.Cancelled {
			t.Errorf("the neighbour ended as %s, %v: %s", out.Reason, err, out.Stderr.Head)
		}
	})
	defer running.Wait()
	defer s.Stop()
	select {
	case <-up:
		do(firstProcess(s))
	case <-time.After(20 * time.Second):
		t.Error("the neighbour did not begin")
	}
}

// testChance sees that two runs draw different chances, whatever they were made from, and have the host's time.
func testChance(t *testing.T, d sandbox.Driver) {
	var runs [2][]string
	for i := range runs {
		s := sandboxtest.Start(t, d, sandbox.Limits{})
		out, err := s.Run(t.Context(), sandbox.Program{Code: source(t, "chance", map[string]any{})})
		if err != nil || out.Reason != sandbox.OK {
			t.Fatalf("it ended as %s, %v: %s", out.Reason, err, out.Stderr.Head)
		}
		runs[i] = strings.Fields(out.Stdout.Head)
		clock, err := strconv.ParseFloat(runs[i][len(runs[i])-1], 64)
		if now := float64(time.Now().UnixMilli()) / 1000; err != nil || math.Abs(now-clock) > 5 {
			t.Errorf("its clock says %v, the host's %v", clock, now)
		}
	}
	if len(runs[0]) != len(runs[1]) || len(runs[0]) < 9 {
		t.Fatalf("it printed %q and %q", runs[0], runs[1])
	}
	for i, drawn := range runs[0] {
		if drawn == runs[1][i] {
			t.Errorf("both runs drew %s", drawn)
		}
	}
}

// testOutside kills and stops, from the host, the processes that a session stands on.
func testOutside(t *testing.T, d sandbox.Driver) {
	lost, timeout := []sandbox.Reason{sandbox.Lost}, []sandbox.Reason{sandbox.Timeout, sandbox.Lost}
	for _, c := range []struct {
		name    string
		strike  func(first int) error
		reasons []sandbox.Reason
		within  time.Duration
	}{
		{"the first process is killed", func(first int) error { return unix.Kill(first, unix.SIGKILL) }, lost, 3 * time.Second},
		{"its parent is killed", func(first int) error { return unix.Kill(parent(t, first), unix.SIGKILL) }, lost, 3 * time.Second},
		{"the first process is stopped", func(first int) error { return unix.Kill(first, unix.SIGSTOP) }, timeout, 6 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := attack{program: "deaf", limits: sandbox.Limits{Wall: 3 * time.Second}, reasons: c.reasons, within: c.within}
			a.during = func(t *testing.T, s sandbox.Session) {
				first := firstProcess(s)
				if first == os.Getpid() {
					s.Stop() // the driver's processes are elsewhere
					return
				}
				if err := c.strike(first); err != nil {
					t.Error(err)
				}
			}
			if !slices.Contains(c.reasons, sandbox.Timeout) {
				a.after = func(t *testing.T, s sandbox.Session, _ sandbox.Outcome) {
					if tree, err := s.Take(t.Context()); err == nil {
						t.Errorf("a tree of %d files was taken from a sandbox that was lost", len(tree.Files))
					}
				}
			}
			if firstOf(t, d) == os.Getpid() {
				a.reasons, a.after = []sandbox.Reason{sandbox.Cancelled}, nil
			}
			a.check(t, d, &host{facts: map[string]any{}})
			worksOn(t, d)
		})
	}
}

// firstOf gives the first process of a session of the driver's.
func firstOf(t *testing.T, d sandbox.Driver) int {
	t.Helper()
	return firstProcess(sandboxtest.Start(t, d, sandbox.Limits{}))
}

func parent(t *testing.T, pid int) int {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		t.Error(err)
		return 0
	}
	_, rest, _ := strings.Cut(string(b), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 2 {
		t.Errorf("process %d is described as %q", pid, b)
		return 0
	}
	n, err := strconv.Atoi(fields[1])
	if err != nil || n <= 1 {
		t.Errorf("the parent of process %d is %q", pid, fields[1])
	}
	return n
}
