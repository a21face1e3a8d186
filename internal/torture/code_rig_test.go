package torture_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"testing"
	"time"

	"treeline/internal/call"
	"treeline/internal/torture"
)

// quick is a fleet whose lost work is taken over soon.
var quick = torture.Settings{Lease: 1200 * time.Millisecond, AckWait: 1800 * time.Millisecond, Sweep: 200 * time.Millisecond, Grace: 5 * time.Second}

// late is what a busy machine may add to a time that is measured.
const late = 6 * time.Second

// rig is a fleet of one process of each role, a caller of it, and a subscriber to its results.
type rig struct {
	*torture.Rig
	t       *testing.T
	client  *torture.Client
	monitor *torture.Monitor
}

func newRig(t *testing.T) *rig {
	t.Helper()
	folder, err := torture.NewFolder()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("kept for a look: %s", folder)
			return
		}
		os.RemoveAll(folder)
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	fleet, err := torture.NewRig(ctx, torture.RigConfig{Folder: folder, Dispatchers: 1, FileWorkers: 1, CodeWorkers: 1, Settings: quick})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := fleet.Close(); err != nil {
			t.Error(err)
		}
	})
	r := &rig{Rig: fleet, t: t}
	if r.client, err = fleet.Client(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.client.Close)
	if r.monitor, err = fleet.Monitor(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.monitor.Close)
	return r
}

// conversation is one with an open turn.
type conversation struct {
	*rig
	id, turn, token string
}

func (r *rig) open(ctx context.Context, id string) *conversation {
	r.t.Helper()
	if err := r.client.PutConversation(ctx, id); err != nil {
		r.t.Fatal(err)
	}
	turn, token, err := r.client.OpenTurn(ctx, id, id+"-turn", []string{"run_code", "write_file", "edit_file", "read_file", "list_files"})
	if err != nil {
		r.t.Fatal(err)
	}
	return &conversation{rig: r, id: id, turn: turn, token: token}
}

func (c *conversation) request(callID, tool string, arguments any) torture.Request {
	c.t.Helper()
	raw, err := json.Marshal(arguments)
	if err != nil {
		c.t.Fatal(err)
	}
	return torture.Request{Token: c.token, CallID: callID, Tool: tool, Arguments: raw}
}

// send sends calls as one step and waits until they are accepted.
func (c *conversation) send(ctx context.Context, requests ...torture.Request) {
	c.t.Helper()
	replies, err := c.client.SendNATS(ctx, requests...)
	if err != nil {
		c.t.Fatal(err)
	}
	for i, reply := range replies {
		if !reply.Accepted {
			c.t.Fatalf("%s was refused: %s", requests[i].CallID, reply.Refusal)
		}
	}
}

// told waits for a call's result.
func (c *conversation) told(ctx context.Context, callID string) call.Result {
	c.t.Helper()
	result, err := c.monitor.Await(ctx, call.Key{Conversation: c.id, Turn: c.turn, Call: callID})
	if err != nil {
		c.t.Fatal(err)
	}
	return result
}

// settled sees that a call has one result, which is told in the same words each time and is the one that is kept.
func (c *conversation) settled(ctx context.Context, callID string) {
	c.t.Helper()
	told, _ := c.monitor.Told(call.Key{Conversation: c.id, Turn: c.turn, Call: callID})
	if told.Differs != nil {
		c.t.Errorf("%s of %s was told in two ways: %s", callID, c.id, told.Differs)
	}
	kept, err := c.client.Result(ctx, c.token, callID)
	if err != nil {
		c.t.Fatal(err)
	}
	first, second := encoded(c.t, told.Result), ""
	if kept.Result != nil {
		second = encoded(c.t, *kept.Result)
	}
	if first != second {
		c.t.Errorf("%s of %s was told as %s and is kept as %s", callID, c.id, first, second)
	}
}

func encoded(t *testing.T, r call.Result) string {
	t.Helper()
	b, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// restart kills a process and starts it again.
func restart(ctx context.Context, p *torture.Process) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := p.Kill(); err != nil {
		return err
	}
	if err := p.Start(ctx); err != nil {
		return fmt.Errorf("start it again: %w", err)
	}
	return nil
}
