package torture

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"treeline/internal/call"
)

// caller is one turn of one conversation, for tests that make a few calls.
type caller struct {
	t           *testing.T
	client      *Client
	name        string
	turn, token string
	n           int
}

func newCaller(t *testing.T, c *Client, name string) *caller {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	k := &caller{t: t, client: c, name: name}
	if err := c.PutConversation(ctx, name); err != nil {
		t.Fatal(err)
	}
	var err error
	if k.turn, k.token, err = c.OpenTurn(ctx, name, name+"-t", offered); err != nil {
		t.Fatal(err)
	}
	return k
}

func (k *caller) request(tool string, args any) Request {
	k.n++
	return Request{Token: k.token, CallID: fmt.Sprintf("c%d", k.n), Tool: tool, Arguments: mustJSON(args)}
}

// send has a call accepted, and does not wait for it.
func (k *caller) send(r Request) {
	k.t.Helper()
	ctx, cancel := context.WithTimeout(k.t.Context(), 30*time.Second)
	defer cancel()
	for {
		reply, err := k.client.SendHTTP(ctx, r, 0)
		switch {
		case err == nil && reply.Accepted:
			return
		case errors.Is(err, errUnsure) && sleep(ctx, 50*time.Millisecond):
		default:
			k.t.Fatalf("call %s of %s: %+v, %v", r.CallID, r.Tool, reply, err)
		}
	}
}

// result waits for a call's result, at most for the time given.
func (k *caller) result(r Request, within time.Duration) call.Result {
	k.t.Helper()
	ctx, cancel := context.WithTimeout(k.t.Context(), within)
	defer cancel()
	for {
		reply, err := k.client.Result(ctx, r.Token, r.CallID)
		if err == nil && reply.Result != nil {
			return *reply.Result
		}
		if err != nil && !errors.Is(err, errUnsure) {
			k.t.Fatal(err)
		}
		if !sleep(ctx, 20*time.Millisecond) {
			k.t.Fatalf("call %s of %s has no result within %s", r.CallID, r.Tool, within)
		}
	}
}

// do makes a call that must end well.
func (k *caller) do(tool string, args any) call.Result {
	k.t.Helper()
	r := k.request(tool, args)
	k.send(r)
	res := k.result(r, 30*time.Second)
	if res.Status != call.OK {
		k.t.Fatalf("%s: %s %s: %s", tool, res.Status, res.Code, call.TextOf(res.Content))
	}
	return res
}

func (k *caller) file(path string) string {
	k.t.Helper()
	ctx, cancel := context.WithTimeout(k.t.Context(), 10*time.Second)
	defer cancel()
	b, err := k.client.File(ctx, k.name, path)
	if err != nil {
		k.t.Fatal(err)
	}
	return string(b)
}

// sleeps is a run that adds its line and goes on for a while.
func (k *caller) sleeps(id string, seconds float64) Request {
	return k.request("run_code", map[string]any{"code": appends(id) + fmt.Sprintf("import time\ntime.sleep(%g)\n", seconds), "timeoutSeconds": 60})
}

// attempt waits until a call runs, and gives its attempt.
func attempt(t *testing.T, r *Rig, k *caller, req Request, least int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for {
		var state string
		var attempt int
		err := r.query(ctx, func(c *pgx.Conn) error {
			return c.QueryRow(ctx, "SELECT state, attempt FROM calls WHERE turn_id = $1 AND call_id = $2", k.turn, req.CallID).Scan(&state, &attempt)
		})
		if err == nil && state == "running" && attempt >= least {
			return
		}
		if !sleep(ctx, 20*time.Millisecond) {
			t.Fatalf("call %s is %s at attempt %d, and should run at attempt %d (%v)", req.CallID, state, attempt, least, err)
		}
	}
}
