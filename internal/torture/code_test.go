package torture_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"treeline/internal/call"
	"treeline/internal/torture"
)

// changing is a program that leaves a new tree bit by bit, over half a second.
const changing = `
import os, time
for i in range(20):
    open(f'workspace/f{i}', 'w').write('new')
    time.sleep(0.02)
open('workspace/kept', 'w').write('new')
os.remove('workspace/gone')
`

// tree lists the conversation's files, by the size that tells old content from new.
func (c *conversation) tree(ctx context.Context, callID string) map[string]int64 {
	c.t.Helper()
	reply, err := c.client.SendHTTP(ctx, c.request(callID, "list_files", map[string]any{}), 20*time.Second)
	if err != nil || reply.Result == nil {
		c.t.Fatalf("list the files of %s: %+v, %v", c.id, reply, err)
	}
	var data struct {
		Files []struct {
			Path  string
			Bytes int64
		}
	}
	if err := json.Unmarshal(reply.Result.Data, &data); err != nil {
		c.t.Fatal(err)
	}
	files := map[string]int64{}
	for _, f := range data.Files {
		files[f.Path] = f.Bytes
	}
	return files
}

// TestACodeWorkerIsKilledAtAnyMomentOfARun kills the only code worker at 20 random moments around a run, with SIGKILL, and
// starts it again. Whatever the moment, the workspace is the old one or the new one, the run has one result, and what comes
// after it in the conversation begins soon.
func TestACodeWorkerIsKilledAtAnyMomentOfARun(t *testing.T) {
	t.Parallel()
	const seed = 4
	r := newRig(t)
	older := map[string]int64{"kept": int64(len("older")), "gone": int64(len("older"))}
	newer := map[string]int64{"kept": int64(len("new"))}
	for i := range 20 {
		newer[fmt.Sprintf("f%d", i)] = int64(len("new"))
	}
	var again int
	for trial := range uint64(20) {
		after := time.Duration(rand.New(rand.NewPCG(seed, trial)).IntN(1000)) * time.Millisecond
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		c := r.open(ctx, fmt.Sprintf("kill-%d", trial))
		c.send(ctx, c.request("seed", "write_file", map[string]any{"files": []map[string]string{
			{"path": "kept", "content": "older"}, {"path": "gone", "content": "older"}}}))
		if got := c.told(ctx, "seed"); got.Status != call.OK {
			t.Fatalf("the first files: %s %s %s", got.Status, got.Code, call.TextOf(got.Content))
		}
		c.send(ctx, c.request("run", "run_code", map[string]any{"code": changing}))
		c.send(ctx, c.request("next", "run_code", map[string]any{"code": "import os\nprint(len(os.listdir('workspace')))"}))
		time.Sleep(after)
		if err := r.CodeWorkers[0].Kill(); err != nil {
			t.Fatal(err)
		}
		killed := time.Now()
		_, done := r.monitor.Told(call.Key{Conversation: c.id, Turn: c.turn, Call: "run"})
		if err := restart(ctx, r.CodeWorkers[0]); err != nil {
			t.Fatal(err)
		}
		run, next := c.told(ctx, "run"), c.told(ctx, "next")
		got := c.tree(ctx, "list")
		want := newer
		if run.Status != call.OK {
			want = older
		}
		if !maps.Equal(got, want) {
			t.Errorf("seed %d,%d: the run ended as %s %s and left %v", seed, trial, run.Status, run.Code, got)
		}
		if run.Status != call.OK || run.Attempt > 2 || next.Status != call.OK {
			t.Errorf("seed %d,%d: the run ended as %s %s at attempt %d, the next call as %s %s", seed, trial, run.Status, run.Code, run.Attempt,
				next.Status, next.Code)
		}
		took := run.FinishedAt.Sub(run.StartedAt)
		waited := next.StartedAt.Sub(killed)
		if limit := quick.Lease + quick.Sweep + took + late; !done && waited > limit {
			t.Errorf("seed %d,%d: the next call began %s after the kill, want at most %s", seed, trial, waited, limit)
		}
		if run.Attempt == 2 {
			again++
		}
		t.Logf("seed %d,%d: killed after %s, run %s at attempt %d, the next began %s after the kill", seed, trial, after, run.Status, run.Attempt,
			waited.Round(time.Millisecond))
		for _, id := range []string{"seed", "run", "next"} {
			c.settled(ctx, id)
		}
		cancel()
	}
	if again == 0 {
		t.Error("no kill struck a run")
	}
}

// TestAStepOfBothLanesKeepsItsOrderWhoeverDies sends file, code, file and code calls as one step over NATS, and kills each
// role at each hop: as soon as the step is accepted, and as soon as each of its calls but the last is told.
func TestAStepOfBothLanesKeepsItsOrderWhoeverDies(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	roles := []struct {
		name    string
		process *torture.Process
	}{{"dispatcher", r.Dispatchers[0]}, {"fileworker", r.FileWorkers[0]}, {"codeworker", r.CodeWorkers[0]}}
	order := []string{"one", "two", "three", "four"}
	for _, role := range roles {
		for hop := range order {
			t.Run(fmt.Sprintf("%s dies at hop %d", role.name, hop+1), func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				c := r.open(ctx, fmt.Sprintf("step-%s-%d", role.name, hop+1))
				c.t = t
				c.send(ctx,
					c.request("one", "write_file", map[string]any{"path": "log", "content": "one\n"}),
					c.request("two", "run_code", map[string]any{"code": "t = open('workspace/log').read()\nassert t == 'one\\n', t\nopen('workspace/log', 'a').write('two\\n')"}),
					c.request("three", "edit_file", map[string]any{"path": "log", "edits": []map[string]string{{"find": "two\n", "replace": "two\nthree\n"}}}),
					c.request("four", "run_code", map[string]any{"code": "t = open('workspace/log').read()\nassert t == 'one\\ntwo\\nthree\\n', t\nopen('workspace/log', 'a').write('four\\n')"}))
				if hop > 0 {
					c.told(ctx, order[hop-1])
				}
				if err := restart(ctx, role.process); err != nil {
					t.Fatal(err)
				}
				var seqs []int64
				for _, id := range order {
					result := c.told(ctx, id)
					if result.Status != call.OK {
						t.Errorf("%s ended as %s %s: %s", id, result.Status, result.Code, call.TextOf(result.Content))
					}
					seqs = append(seqs, result.Seq)
				}
				if want := []int64{1, 2, 3, 4}; !slices.Equal(seqs, want) {
					t.Errorf("places in the order: %v, want %v", seqs, want)
				}
				if b, err := r.client.File(ctx, c.id, "log"); err != nil || string(b) != "one\ntwo\nthree\nfour\n" {
					t.Errorf("the file holds %q, %v", b, err)
				}
				for _, id := range order {
					c.settled(ctx, id)
				}
			})
		}
	}
}
