package attacktest

import (
	"strings"
	"testing"
	"time"

	"treeline/internal/sandbox"
)

const mib = 1 << 20

// exhaust are attacks that use up the machine.
func exhaust() []attack {
	small := sandbox.Limits{Memory: 256 * mib, Wall: 50 * time.Second}
	outOfMemory := []sandbox.Reason{sandbox.OutOfMemory}
	full := sandbox.Limits{Disk: 16 * mib, Inodes: 500, TreeFiles: 10000, Memory: 512 * mib}
	return []attack{
		{program: "fork_bomb", limits: sandbox.Limits{Wall: 2 * time.Second}, reasons: []sandbox.Reason{sandbox.Timeout}, within: 5 * time.Second},
		{program: "thread_bomb", limits: sandbox.Limits{Wall: 2 * time.Second}, reasons: []sandbox.Reason{sandbox.Timeout}, within: 5 * time.Second},
		{program: "memory_children", limits: small, reasons: outOfMemory, after: withinMemory(small.Memory)},
		{program: "memory_spinning", limits: small, reasons: outOfMemory, after: withinMemory(small.Memory)},
		{program: "memory_hidden", limits: small, reasons: outOfMemory, after: withinMemory(small.Memory)},
		{program: "memory_dropped", limits: small, reasons: outOfMemory, after: withinMemory(small.Memory)},
		{program: "memory_tables", limits: small, reasons: outOfMemory, after: withinMemory(small.Memory)},
		{program: "memory_sockets", limits: small, reasons: outOfMemory, after: withinMemory(small.Memory)},
		{program: "memory_closed", limits: small, reasons: outOfMemory},
		{program: "memory_netlink", limits: small, reasons: outOfMemory, after: withinMemory(small.Memory)},
		{program: "memory_mappings", limits: small, reasons: outOfMemory, after: withinMemory(small.Memory)},
		{program: "memory_locks", limits: small, reasons: outOfMemory, after: withinMemory(small.Memory)},
		// It takes for four seconds, and must be dead soon after it is told to stop.
		{program: "kernel_objects", reasons: []sandbox.Reason{sandbox.Cancelled}, within: 10 * time.Second,
			during: func(_ *testing.T, s sandbox.Session) { s.Stop() }},
		{program: "memory_twice", limits: small},
		{program: "memory_deleted", limits: full},
		{program: "disk", limits: full, after: func(t *testing.T, s sandbox.Session, _ sandbox.Outcome) {
			if tree, _ := take(t, s); tree.Manifest.Bytes > full.Disk {
				t.Errorf("it left %d bytes", tree.Manifest.Bytes)
			}
		}},
		{program: "inodes", limits: full},
		{program: "sparse", after: func(t *testing.T, s sandbox.Session, _ sandbox.Outcome) {
			began := time.Now()
			_, err := s.Take(t.Context())
			want := "the tree is too large: 8388608000 bytes in 20 files"
			if took := time.Since(began); err == nil || err.Error() != want || took > time.Second {
				t.Errorf("take: %v after %v, want %q at once", err, took, want)
			}
		}},
		{program: "output", says: anything, after: func(t *testing.T, _ sandbox.Session, out sandbox.Outcome) {
			for name, o := range map[string]sandbox.Output{"stdout": out.Stdout, "stderr": out.Stderr} {
				if len(o.Head) > mib/2 || len(o.Tail) > mib/2 || o.Total < 100*mib || o.Dropped != o.Total-int64(len(o.Head)+len(o.Tail)) {
					t.Errorf("%s: head %d, tail %d, dropped %d, total %d", name, len(o.Head), len(o.Tail), o.Dropped, o.Total)
				}
			}
			if !strings.HasPrefix(out.Stdout.Head, "begin\n\x1b[2J\x1b]0;title\x07\x00\uFFFD\uFFFD\r\b") || !strings.HasSuffix(out.Stdout.Tail, "\nend\n") {
				t.Errorf("it begins with %.40q and ends with %q", out.Stdout.Head, out.Stdout.Tail[max(0, len(out.Stdout.Tail)-20):])
			}
		}},
		{program: "deaf", limits: sandbox.Limits{Wall: time.Second}, reasons: []sandbox.Reason{sandbox.Timeout}, within: 3 * time.Second,
			after: left(map[string]string{"begun": "1"})},
		{program: "deaf", limits: sandbox.Limits{Wall: time.Minute}, reasons: []sandbox.Reason{sandbox.Cancelled}, within: 5 * time.Second,
			during: func(_ *testing.T, s sandbox.Session) { s.Stop() }},
		{program: "stopped", limits: sandbox.Limits{Wall: time.Second}, reasons: []sandbox.Reason{sandbox.Timeout}, within: 3 * time.Second,
			after: left(map[string]string{"begun": "1"})},
	}
}

// withinMemory sees that a group was ended before it had much more than its limit.
func withinMemory(limit int64) func(*testing.T, sandbox.Session, sandbox.Outcome) {
	return func(t *testing.T, s sandbox.Session, out sandbox.Outcome) {
		if out.PeakMemory > 3*limit { // on a machine that is busy with other things
			t.Errorf("it had %d MiB, its limit is %d", out.PeakMemory/mib, limit/mib)
		}
		take(t, s)
	}
}
