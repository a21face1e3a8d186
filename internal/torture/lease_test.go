package torture

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"treeline/internal/call"
)

func TestARunOfThreeLeasesSurvives(t *testing.T) {
	t.Parallel()
	r := newTestRig(t, RigConfig{Dispatchers: 1, CodeWorkers: 2})
	c, _ := clients(t, r)
	k := newCaller(t, c, "long-run")
	run := k.sleeps("r1", 3.2*r.Settings.Lease.Seconds())
	k.send(run)
	if res := k.result(run, 30*time.Second); res.Status != call.OK || res.Attempt != 1 {
		t.Errorf("%s %s at attempt %d, want ok at attempt 1", res.Status, res.Code, res.Attempt)
	}
}

func TestAWorkerStoppedPastItsLeaseDoesNothingWhenItGoesOn(t *testing.T) {
	t.Parallel()
	r := newTestRig(t, RigConfig{Dispatchers: 1, CodeWorkers: 2})
	c, m := clients(t, r)
	first, second := r.CodeWorkers[0], r.CodeWorkers[1]
	if err := second.Kill(); err != nil {
		t.Fatal(err)
	}
	k := newCaller(t, c, "stopped")
	run := k.sleeps("r1", 1.5)
	k.send(run)
	attempt(t, r, k, run, 1)
	if err := first.Pause(); err != nil {
		t.Fatal(err)
	}
	if err := second.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	res := k.result(run, 30*time.Second)
	if res.Status != call.OK || res.Attempt != 2 {
		t.Errorf("%s %s at attempt %d, want ok at attempt 2", res.Status, res.Code, res.Attempt)
	}
	if err := first.Resume(); err != nil {
		t.Fatal(err)
	}
	// The one that goes on would finish about now; what it did must not be seen.
	time.Sleep(2 * time.Second)
	again := k.result(run, time.Second)
	if string(mustJSON(again)) != string(mustJSON(res)) {
		t.Errorf("the result changed from %s to %s", mustJSON(res), mustJSON(again))
	}
	if got := k.file(runFile); got != "run r1\n" {
		t.Errorf("the file is %q, want one line", got)
	}
	if told, ok := m.Told(call.Key{Conversation: k.name, Turn: k.turn, Call: run.CallID}); !ok || told.Differs != nil {
		t.Errorf("told %+v, want one result", told)
	}
}

func TestFileWorkersStoppedPastLeaseAndAckWaitApplyNothingTwice(t *testing.T) {
	t.Parallel()
	r := newTestRig(t, RigConfig{Dispatchers: 1, FileWorkers: 2})
	c, m := clients(t, r)
	a := &Appending{Client: c, Monitor: m, Conversation: "stopped", Callers: 60, Way: Mixed}
	ctx := t.Context()
	if err := a.Begin(ctx); err != nil {
		t.Fatal(err)
	}
	loaded := make(chan error, 1)
	go func() { loaded <- a.Run(ctx) }()
	for _, w := range r.FileWorkers { // one after the other, each in the midst of something
		time.Sleep(30 * time.Millisecond)
		if err := w.Pause(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(r.Settings.AckWait + r.Settings.Lease)
		if err := w.Resume(); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-loaded; err != nil {
		t.Fatal(err)
	}
	if err := a.Check(ctx); err != nil {
		t.Error(err)
	}
}

func TestAWorkerCutOffForTwoLeasesFencesItself(t *testing.T) {
	t.Parallel()
	r := newTestRig(t, RigConfig{Dispatchers: 1, CodeWorkers: 2, Proxied: true})
	c, _ := clients(t, r)
	first, second := r.CodeWorkers[0], r.CodeWorkers[1]
	if err := second.Kill(); err != nil {
		t.Fatal(err)
	}
	k := newCaller(t, c, "cut-off")
	run := k.sleeps("r1", 5*r.Settings.Lease.Seconds())
	k.send(run)
	attempt(t, r, k, run, 1)
	toDatabase := r.Links[2] // the dispatcher has two, then each worker has two, the database's first
	toDatabase.Set(HalfOpen)
	if err := second.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	attempt(t, r, k, run, 2)
	discarded := func() bool {
		b, err := os.ReadFile(filepath.Join(r.Folder, first.Name+".log"))
		return err == nil && strings.Contains(string(b), "call discarded")
	}
	for begun := time.Now(); !discarded(); time.Sleep(50 * time.Millisecond) {
		if time.Since(begun) > 3*r.Settings.Lease {
			t.Fatal("the worker that is cut off goes on with a call that it has lost")
		}
	}
	toDatabase.Set(Whole)
	if res := k.result(run, time.Minute); res.Status != call.OK || res.Attempt != 2 {
		t.Errorf("%s %s at attempt %d, want ok at attempt 2", res.Status, res.Code, res.Attempt)
	}
	if got := k.file(runFile); got != "run r1\n" {
		t.Errorf("the file is %q, want one line", got)
	}
}

func TestACallThatEndsItsWorkerEveryTimeFailsAndTheNextGoesOn(t *testing.T) {
	t.Parallel()
	r := newTestRig(t, RigConfig{Dispatchers: 1, FileWorkers: 1, CodeWorkers: 1})
	c, _ := clients(t, r)
	k := newCaller(t, c, "poison")
	poison := k.sleeps("poison", 30)
	next := k.request("write_file", newFile{"after.txt", "after\n"})
	k.send(poison)
	k.send(next)
	for n := 1; n <= 3; n++ {
		attempt(t, r, k, poison, n)
		if err := r.CodeWorkers[0].Kill(); err != nil {
			t.Fatal(err)
		}
		if err := r.CodeWorkers[0].Start(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	res := k.result(poison, 20*time.Second)
	if res.Status != call.Failed || res.Code != call.WorkerLost || res.Attempt != 3 {
		t.Errorf("%s %s at attempt %d, want failed worker_lost at attempt 3", res.Status, res.Code, res.Attempt)
	}
	if res := k.result(next, 20*time.Second); res.Status != call.OK {
		t.Errorf("the next call: %s %s", res.Status, res.Code)
	}
}

func TestCodeThatIgnoresItsStopDiesWithItsChildren(t *testing.T) {
	t.Parallel()
	r := newTestRig(t, RigConfig{Dispatchers: 1, CodeWorkers: 1})
	c, _ := clients(t, r)
	k := newCaller(t, c, "stubborn")
	const mark = "stubborn-child-4711"
	run := k.request("run_code", map[string]any{"timeoutSeconds": 1, "code": appends("r1") + `
import os, signal, sys, time
for s in range(1, 32):
    try: signal.signal(s, signal.SIG_IGN)
    except (OSError, ValueError): pass
if os.fork() == 0:
    os.setsid()
    os.execv(sys.executable, [sys.executable, '-c', 'import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(600)', '` + mark + `'])
time.sleep(600)
`})
	k.send(run)
	res := k.result(run, 20*time.Second)
	if res.Code != call.Timeout {
		t.Errorf("%s %s, want failed timeout", res.Status, res.Code)
	}
	commands, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range commands {
		if b, err := os.ReadFile(path); err == nil && strings.Contains(string(b), mark+"\x00") && !strings.Contains(string(b), "import os") {
			t.Errorf("a child lives: %s", path)
		}
	}
}
