package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"treeline/internal/sandbox"
	"treeline/internal/sandbox/sandboxtest"

	"golang.org/x/sys/unix"
)

func TestUserLost(t *testing.T) {
	d := newDriver(t)
	s := sandboxtest.Start(t, d, sandbox.Limits{}).(*Session)
	sandboxtest.Put(t, s, "workspace/a", "1")
	out, err := s.Run(t.Context(), sandbox.Program{Code: []byte("print('up')\nimport time; time.sleep(60)"), Output: func(sandbox.Stream, string) {
		if err := unix.Kill(s.InitPID(), unix.SIGKILL); err != nil {
			t.Error(err)
		}
	}})
	if err != nil || out.Reason != sandbox.Lost || out.Stdout.Head != "up\n" {
		t.Errorf("got %+v, %v, want lost", out, err)
	}
	if _, err := s.Take(t.Context()); !errors.Is(err, sandbox.ErrLost) {
		t.Errorf("take: %v, want lost", err)
	}
}

func TestUserLostBeforeRun(t *testing.T) {
	s := sandboxtest.Start(t, newDriver(t), sandbox.Limits{}).(*Session)
	if err := unix.Kill(s.InitPID(), unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	out, err := s.Run(t.Context(), sandbox.Program{Code: []byte("print(1)")})
	if err != nil || out.Reason != sandbox.Lost {
		t.Errorf("got %+v, %v, want lost", out, err)
	}
}

func TestUserLauncherIsReplaced(t *testing.T) {
	d := newDriver(t)
	runOnce(t, d, "print(1)", nil)
	for range 3 {
		if err := d.launcher.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		runOnce(t, d, "print(1)", nil)
	}
}

func TestUserClosedDriver(t *testing.T) {
	d := newDriver(t)
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if s, err := d.Start(t.Context(), sandbox.Spec{}); err == nil {
		s.Close()
		t.Error("a closed driver starts")
	}
}

func TestUserCancelledStart(t *testing.T) {
	d := newDriver(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := d.Start(ctx, sandbox.Spec{}); !errors.Is(err, context.Canceled) {
		t.Errorf("start: %v, want cancelled", err)
	}
	ctx, cancel = context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if s, err := d.Start(ctx, sandbox.Spec{}); err == nil {
		s.Close()
	} else if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("start: %v, want a deadline", err)
	}
	runOnce(t, d, "print(1)", nil)
}

// TestUserNothingStays sees that sessions leave no descriptor, process or goroutine behind, however they end.
func TestUserNothingStays(t *testing.T) {
	d := newDriver(t)
	session := func(i int) {
		s, err := d.start(t.Context(), sandbox.Spec{Limits: sandbox.Limits{Wall: 200 * time.Millisecond}})
		if err != nil {
			t.Fatal(err)
		}
		code := []string{"print(1)", "1/0", "import os\nos.fork(); import time; time.sleep(9)"}[i%3]
		if i%4 != 3 {
			if _, err := s.Run(t.Context(), sandbox.Program{Code: []byte(code)}); err != nil {
				t.Error(err)
			}
			if _, err := s.Take(t.Context()); err != nil {
				t.Error(err)
			}
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if err := unix.Kill(s.InitPID(), 0); !errors.Is(err, unix.ESRCH) && !zombie(s.InitPID()) {
			t.Errorf("init is still there: %v", err)
		}
	}
	session(0)
	before, routines := descriptors(t), runtime.NumGoroutine()
	for i := range 12 {
		session(i)
	}
	if after := descriptors(t); after > before {
		t.Errorf("%d descriptors, %d before", after, before)
	}
	if after := runtime.NumGoroutine(); after > routines+1 {
		t.Errorf("%d goroutines, %d before", after, routines)
	}
}

// zombie reports whether a process is dead and only waits for the launcher to look.
func zombie(pid int) bool {
	body, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || strings.Contains(string(body), ") Z ")
}

func descriptors(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

func TestUserMemoryStaysFlatWhileAGibibyteIsPrinted(t *testing.T) {
	d := newDriver(t)
	s := sandboxtest.Start(t, d, sandbox.Limits{})
	var peak uint64
	pieces := 0
	code := "import os\nb = b'x' * 65535 + b'\\n'\nfor i in range(16384): os.write(1, b)"
	out, err := s.Run(t.Context(), sandbox.Program{Code: []byte(code), Output: func(sandbox.Stream, string) {
		if pieces++; pieces%1000 == 0 {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			peak = max(peak, m.HeapInuse)
		}
	}})
	if err != nil || out.Reason != sandbox.OK {
		t.Fatalf("got %v, %v", out.Reason, err)
	}
	if out.Stdout.Total != 1<<30 || out.Stdout.Dropped != 1<<30-1<<20 || len(out.Stdout.Head) != 1<<19 || len(out.Stdout.Tail) != 1<<19 {
		t.Errorf("total %d, dropped %d, head %d, tail %d", out.Stdout.Total, out.Stdout.Dropped, len(out.Stdout.Head), len(out.Stdout.Tail))
	}
	if peak > 64<<20 {
		t.Errorf("the heap grew to %d MiB", peak>>20)
	}
}

// TestUserWorkerDies kills a worker without warning and sees that nothing of its sandboxes lives on.
func TestUserWorkerDies(t *testing.T) {
	if marker := os.Getenv("SANDBOX_TEST_MARKER"); marker != "" {
		doomedWorker(t, marker)
		return
	}
	marker := filepath.Join(t.TempDir(), "marker")
	cmd := exec.Command("/proc/self/exe", "-test.run=^TestUserWorkerDies$")
	cmd.Env = append(os.Environ(), "SANDBOX_TEST_MARKER="+marker)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var pids []byte
	eventually(t, "the worker's sandbox is up", func() bool {
		pids, _ = os.ReadFile(marker)
		return len(pids) > 0
	})
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	var launcher, first int
	if _, err := fmt.Sscan(string(pids), &launcher, &first); err != nil {
		t.Fatal(err)
	}
	for _, pid := range []int{launcher, first} {
		eventually(t, "the process is dead", func() bool { return zombie(pid) })
	}
}

// doomedWorker runs a program for ever and tells the test when it is up.
func doomedWorker(t *testing.T, marker string) {
	d := newDriver(t)
	s, err := d.start(t.Context(), sandbox.Spec{})
	if err != nil {
		t.Fatal(err)
	}
	_, _ = s.Run(t.Context(), sandbox.Program{Code: []byte("print('up')\nwhile True: pass"), Output: func(sandbox.Stream, string) {
		text := fmt.Sprint(d.launcher.cmd.Process.Pid, " ", s.InitPID())
		if err := os.WriteFile(marker+"~", []byte(text), 0o600); err != nil {
			t.Error(err)
		}
		if err := os.Rename(marker+"~", marker); err != nil {
			t.Error(err)
		}
	}})
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not so", what)
		}
	}
}
