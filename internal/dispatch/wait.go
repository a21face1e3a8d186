package dispatch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"treeline/internal/call"
	"treeline/internal/ledger"
	"treeline/internal/outage"
	"treeline/internal/queue"
	"treeline/internal/store/db"
)

// waiter waits for the telling of one call.
type waiter struct {
	key  call.Key
	told <-chan []byte
	sub  queue.Subscription
	// look asks for a look at the ledger before the waiting.
	look bool
}

func (w *waiter) stop() { w.sub.Stop() }

func (d *Dispatcher) await(k call.Key) (*waiter, error) {
	told, sub, err := d.queue.AwaitResult(k)
	if err != nil {
		return nil, err
	}
	return &waiter{key: k, told: told, sub: sub}, nil
}

// lookEvery is how often a long wait looks at the ledger. Results come by themselves; this finds a call that the database
// forgot in a crash, and makes up for a telling that went by.
const lookEvery = 5 * time.Second

// wait returns once the call is told, or when the time is up with the answer as it is known and kept. It looks at the
// ledger after a reconnect, since a telling may have gone by. outage.ErrForgotten says that the call is to be sent again.
func (d *Dispatcher) wait(ctx context.Context, w *waiter, a Answer, most time.Duration) (Answer, error) {
	timer, look := time.NewTimer(most), time.NewTicker(lookEvery)
	defer timer.Stop()
	defer look.Stop()
	for {
		again := d.queue.Again()
		if w.look {
			w.look = false
			got, err := d.look(ctx, w.key)
			if errors.Is(err, ledger.ErrNotThere) {
				return a, outage.ErrForgotten
			}
			if err == nil && got.Result != nil {
				return got, nil
			}
		}
		select {
		case <-ctx.Done():
			return d.kept(ctx, w.key)
		case <-timer.C:
			return d.kept(ctx, w.key)
		case <-again:
			w.look = true
		case <-look.C:
			w.look = true
		case body := <-w.told:
			var res call.Result
			if err := json.Unmarshal(body, &res); err != nil ||
				res.CallID != w.key.Call || res.TurnID != w.key.Turn || res.ConversationID != w.key.Conversation {
				continue // somebody else's, sent under this call's subject
			}
			if res.Data == nil { // told short: the ledger has it whole
				w.look = true
				continue
			}
			a.Result, a.Told, a.State = &res, string(body), string(ledger.Done)
			return a, nil
		}
	}
}

// lookWithin bounds one look of a wait at the ledger.
const lookWithin = 5 * time.Second

func (d *Dispatcher) look(ctx context.Context, k call.Key) (Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, lookWithin)
	defer cancel()
	return d.lookup(ctx, k)
}

// kept is the answer to a caller that will not wait longer: what it says is on the database's disk.
func (d *Dispatcher) kept(ctx context.Context, k call.Key) (Answer, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookWithin)
	defer cancel()
	if err := d.ledger.Flush(ctx); err != nil {
		return Answer{}, err
	}
	a, err := d.lookup(ctx, k)
	if errors.Is(err, ledger.ErrNotThere) {
		err = outage.ErrForgotten
	}
	return a, err
}

// Lookup gives what is known of a call of the token's turn. A closed or expired token still reads, until the
// conversation is deleted. The error is ErrUnknownToken, ledger.ErrNotThere, or means that the system itself failed.
func (d *Dispatcher) Lookup(ctx context.Context, token, callID string) (Answer, error) {
	t, err := d.turn(ctx, token)
	if err != nil {
		return Answer{}, err
	}
	if r := gone(t); r != nil {
		return momentary(t.Turn, Request{CallID: callID}, r), nil
	}
	key := call.Key{Conversation: t.Conversation, Turn: t.ID, Call: callID}
	a, err := d.lookup(ctx, key)
	if err != nil || a.Result != nil {
		return a, err
	}
	return d.kept(ctx, key) // to say that it is accepted is to promise that it stays so
}

// gone refuses what a turn asks of a conversation that was deleted since: for good, or before it was restored.
func gone(t ledger.TurnState) *call.Refusal {
	switch {
	case t.ConversationDeleted:
		return refuseDeleted()
	case t.Restored:
		return call.Refuse(call.TurnClosed, "This turn was closed when its conversation was deleted, and its results went with it. "+
			"The conversation was restored since; only a new turn can work in it.")
	}
	return nil
}

func (d *Dispatcher) lookup(ctx context.Context, k call.Key) (Answer, error) {
	c, err := d.ledger.Queries().Call(ctx, db.CallParams{TurnID: k.Turn, CallID: k.Call})
	if errors.Is(err, pgx.ErrNoRows) {
		return Answer{}, ledger.ErrNotThere
	}
	if err != nil {
		return Answer{}, fmt.Errorf("read the call: %w", err)
	}
	a := Answer{CallID: k.Call, Seq: c.Seq, State: c.State}
	if c.State != string(ledger.Done) {
		return a, nil
	}
	result, err := wireForm(c)
	if err != nil {
		return a, err
	}
	a.Result, a.Told = &call.Result{}, string(result)
	if err := json.Unmarshal(result, a.Result); err != nil {
		return a, fmt.Errorf("read the stored result: %w", err)
	}
	return a, nil
}

// wireForm is a done call's result; where a deletion has dropped its bytes, what is left of it, as it is told.
func wireForm(c db.Call) ([]byte, error) {
	if c.Result != nil {
		return c.Result, nil
	}
	status := ""
	if c.Status != nil {
		status = *c.Status
	}
	return ledger.DroppedResult(call.Key{Conversation: c.ConversationID, Turn: c.TurnID, Call: c.CallID}, c.Tool, c.Seq, status, c.Code,
		int(c.Attempt), c.ResultRef, c.AcceptedAt, c.FinishedAt)
}

// Cancel ends a waiting call at once and asks the worker of a running one to stop; what is done answers with its result.
func (d *Dispatcher) Cancel(ctx context.Context, token, callID string) (Answer, error) {
	t, err := d.turn(ctx, token)
	if err != nil {
		return Answer{}, err
	}
	if r := gone(t); r != nil {
		return momentary(t.Turn, Request{CallID: callID}, r), nil
	}
	key := call.Key{Conversation: t.Conversation, Turn: t.ID, Call: callID}
	c, err := d.ledger.Cancel(ctx, t.Conversation, t.ID, callID)
	if err != nil {
		return Answer{}, err
	}
	if c.Told != nil {
		d.teller.TellSoon(ctx, key, c.Told)
	}
	if c.Next != nil {
		if err := d.queue.SendEvent(*c.Next); err != nil {
			d.log.Warn().Err(err).Str("conversation", t.Conversation).Msg("event not sent; the sweeper will")
		}
	}
	if c.Running {
		if err := d.queue.PublishCancel(key); err != nil {
			d.log.Warn().Err(err).Str("conversation", t.Conversation).Str("call", callID).Msg("cancelling not pushed; a heartbeat will tell")
		}
		return Answer{CallID: callID, State: string(ledger.Running)}, nil
	}
	return Answer{CallID: callID, Seq: c.Result.Seq, Result: c.Result, State: string(ledger.Done)}, nil
}
