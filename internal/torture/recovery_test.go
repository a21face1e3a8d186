package torture

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"treeline/internal/call"
)

// background calls all the time, from several conversations at once, until stop; each call must be answered in the end.
type background struct {
	wg   sync.WaitGroup
	stop context.CancelFunc
	done atomic.Int64
}

func startBackground(t *testing.T, c *Client, conversations int) *background {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	b := &background{stop: stop}
	t.Cleanup(b.wg.Wait)
	t.Cleanup(stop)
	for i := range conversations {
		k := newCaller(t, c, fmt.Sprintf("load-%d", i))
		b.wg.Go(func() {
			for ctx.Err() == nil {
				r := k.request("write_file", newFile{"a.txt", fmt.Sprintf("content %d\n", k.n)})
				if reply, err := settled(t.Context(), c, r); err != nil || reply.Result.Status != call.OK {
					t.Errorf("call %s of %s: %+v, %v", r.CallID, k.name, reply, err)
					return
				}
				b.done.Add(1)
			}
		})
	}
	return b
}

func (b *background) end() int64 {
	b.stop()
	b.wg.Wait()
	return b.done.Load()
}

// settled sends a call until it has a result.
func settled(ctx context.Context, c *Client, r Request) (Reply, error) {
	ctx, cancel := context.WithTimeout(ctx, 40*time.Second)
	defer cancel()
	for {
		reply, err := c.SendHTTP(ctx, r, 2*time.Second)
		switch {
		case err != nil && !errors.Is(err, errUnsure):
			return reply, err
		case err == nil && reply.Result != nil:
			return reply, nil
		case err == nil && reply.Refusal != "" && reply.Refusal != call.Busy:
			return reply, fmt.Errorf("refused: %s", reply.Refusal)
		}
		if !sleep(ctx, 20*time.Millisecond) {
			return reply, fmt.Errorf("no result: %w", errors.Join(ctx.Err(), err))
		}
	}
}

// resumesWithin bounds how long after a restart the first call may take.
const resumesWithin = 12 * time.Second

func TestConsumptionResumesAfterEachOfTenRestarts(t *testing.T) {
	t.Parallel()
	r := newTestRig(t, RigConfig{Dispatchers: 2, FileWorkers: 2})
	c, _ := clients(t, r)
	load := startBackground(t, c, 4)
	k := newCaller(t, c, "watch")
	for n := range 10 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		if err := errors.Join(r.Postgres.Restart(ctx), r.NATS.Term(10*time.Second), r.NATS.Start(ctx)); err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		req := k.request("write_file", newFile{"a.txt", fmt.Sprintf("restart %d\n", n)})
		if _, err := settled(ctx, c, req); err != nil {
			t.Fatalf("after restart %d: %v", n, err)
		}
		if took := time.Since(begun); took > resumesWithin {
			t.Errorf("after restart %d the first call took %s", n, took)
		}
		cancel()
	}
	t.Logf("%d calls meanwhile", load.end())
}

func TestACallSentAgainAfterEverythingWasRestartedIsDoneOnce(t *testing.T) {
	t.Parallel()
	r := newTestRig(t, RigConfig{Dispatchers: 1, FileWorkers: 1})
	c, _ := clients(t, r)
	k := newCaller(t, c, "again")
	k.do("write_file", newFile{"a.txt", "<<here>>\n"})
	edit := k.request("edit_file", map[string]any{"path": "a.txt", "edits": []textEdit{{Find: marker, Replace: "once\n" + marker}}})
	k.send(edit)
	first := k.result(edit, 10*time.Second)
	// With its store the queue forgets the window in which it knows a result again, as time would have it.
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var errs []error
	for _, p := range r.Roles() {
		errs = append(errs, p.Term(10*time.Second))
	}
	errs = append(errs, r.Postgres.Restart(ctx), r.WipeNATS(ctx), r.StartAll(ctx))
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		reply, err := settled(ctx, c, edit)
		if err != nil || string(mustJSON(reply.Result)) != string(mustJSON(first)) {
			t.Errorf("sent again: %+v, %v; want %s", reply, err, mustJSON(first))
		}
	}
	if got := k.file("a.txt"); got != "once\n<<here>>\n" {
		t.Errorf("the file is %q", got)
	}
}

// terms is how often a process of a fleet under load is asked to end. With the race detector, each process would end with
// another exit code than 0 after a race.
const terms = 100

func TestAHundredOrderlyEndsUnderLoad(t *testing.T) {
	t.Parallel()
	r := newTestRig(t, RigConfig{Dispatchers: 2, FileWorkers: 2})
	c, m := clients(t, r)
	load := startBackground(t, c, 6)
	a := &Appending{Client: c, Monitor: m, Conversation: "ends", Callers: 60, Way: Mixed}
	if err := a.Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	loaded := make(chan error, 1)
	go func() { loaded <- a.Run(t.Context()) }()
	roles := r.Roles()
	for n := range terms {
		p := roles[n%len(roles)]
		if err := errors.Join(p.Term(r.Settings.Grace+time.Second), p.Start(t.Context())); err != nil {
			t.Fatalf("end %d: %v", n, err)
		}
	}
	if err := errors.Join(<-loaded, a.Check(t.Context())); err != nil {
		t.Error(err)
	}
	t.Logf("%d calls meanwhile", load.end())
}

func TestRollingRestartsFailNoCall(t *testing.T) {
	t.Parallel()
	r := newTestRig(t, RigConfig{Dispatchers: 2, FileWorkers: 2, CodeWorkers: 2})
	c, _ := clients(t, r)
	load := startBackground(t, c, 4) // fails on any answer that is neither a result nor a cut connection
	var runs sync.WaitGroup
	stop := make(chan struct{})
	k := newCaller(t, c, "runs")
	ended := 0
	runs.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			ended++
			run := k.sleeps(fmt.Sprint(ended), 0.3)
			k.send(run)
			if res := k.result(run, 30*time.Second); res.Status != call.OK {
				t.Errorf("a run ended as %s %s", res.Status, res.Code)
			}
		}
	})
	for range 2 {
		for _, p := range r.Roles() {
			if err := errors.Join(p.Term(r.Settings.Grace+time.Second), p.Start(t.Context())); err != nil {
				t.Fatal(err)
			}
		}
	}
	close(stop)
	runs.Wait()
	want := ""
	for n := range ended {
		want += fmt.Sprintf("run %d\n", n+1)
	}
	if got := k.file(runFile); got != want {
		t.Errorf("the runs left %q, want %q: each once", got, want)
	}
	t.Logf("%d calls and %d runs meanwhile", load.end(), ended)
}
