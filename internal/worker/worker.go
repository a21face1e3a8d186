// Package worker is what both lanes do with a delivered event: look at the ledger, claim, do the call, finish it, tell
// the result and publish the next. What doing a call means is the lane's own.
package worker

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"treeline/internal/call"
	"treeline/internal/ledger"
	"treeline/internal/queue"
	"treeline/internal/store/db"
)

// Do does one call. An error means that the system itself failed: nothing is finished, and the call is tried again.
type Do func(ctx context.Context, w ledger.Work) (ledger.Outcome, error)

// Worker settles deliveries of one lane.
type Worker struct {
	Ledger *ledger.Ledger
	Queue  *queue.Queue
	Teller *ledger.Teller
	Log    zerolog.Logger
	// Lane is "file" or "code".
	Lane string
	// ClaimAlways claims also first deliveries: for work that takes long. The context in which claimed work is done ends as
	// soon as the call is to stop, for whatever reason; Do returns an error if that ended its work.
	ClaimAlways bool
	// WithTree has the work come with the workspace's tree.
	WithTree bool
	// Do does the call of a claimed work.
	Do Do

	held held
}

// retryFor bounds how long a delivery is tried again while the database or the queue is away. It stays below AckWait's
// order of magnitude; the sweeper brings the call back later.
const retryFor = 20 * time.Second

// Handle settles one delivery: afterwards the call is done and told, or it is somebody else's.
func (w *Worker) Handle(ctx context.Context, d queue.Delivery) error {
	b := backoff.NewExponentialBackOff(backoff.WithInitialInterval(50*time.Millisecond), backoff.WithMaxInterval(2*time.Second),
		backoff.WithMaxElapsedTime(retryFor))
	first := d.First
	return backoff.Retry(func() error {
		err := w.settle(ctx, d.Event, first)
		first = false // what was begun unclaimed may have been committed
		if errors.Is(err, ledger.ErrNotThere) || errors.Is(err, ledger.ErrFenced) {
			return nil
		}
		return err
	}, backoff.WithContext(b, ctx))
}

func (w *Worker) settle(ctx context.Context, e ledger.Event, first bool) error {
	work, state, err := w.Ledger.Look(ctx, e, w.WithTree)
	if err != nil {
		return err
	}
	if state != ledger.Released || work.Lane != w.Lane || work.Generation != e.Generation {
		return w.notToDo(ctx, work, state)
	}
	if !first || w.ClaimAlways {
		return w.hold(ctx, e, work)
	}
	// A first delivery of what is quickly done needs no claim: the fence holds that nobody has claimed it.
	outcome, err := w.do(ctx, work)
	if err != nil {
		return err
	}
	return w.Finish(ctx, work, outcome)
}

// notToDo settles an event of a call that is not there to be done: a finished one is told again, with the conversation's
// present head; one that is running is its worker's.
func (w *Worker) notToDo(ctx context.Context, work ledger.Work, state ledger.State) error {
	if state == ledger.Running {
		return nil
	}
	result, head, err := w.Ledger.Retell(ctx, work.Key)
	if err != nil {
		return err
	}
	if result != nil {
		if err := w.Teller.Tell(ctx, work.Key, result); err != nil {
			return err
		}
	}
	if head != nil && head.Key() != work.Key {
		return w.Queue.PublishEvent(ctx, *head)
	}
	return nil
}

// do turns a panic into a failed call: the same call would bring down the next worker as well.
func (w *Worker) do(ctx context.Context, work ledger.Work) (o ledger.Outcome, err error) {
	defer func() {
		if p := recover(); p != nil {
			o, err = w.panicked(work), nil
		}
	}()
	return w.Do(ctx, work)
}

func (w *Worker) panicked(work ledger.Work) ledger.Outcome {
	w.Log.Error().Str("conversation", work.Key.Conversation).Str("turn", work.Key.Turn).Str("call", work.Key.Call).
		Str("tool", work.Tool).Str("stack", string(debug.Stack())).Msg("a call made its worker panic")
	return ledger.FailedOutcome(call.Internal, "The system failed while doing this call. Nothing was changed. "+
		"Sending it again under a new call id may work; if it fails in the same way, do it differently.")
}

// commit is Ledger.Finish; an effect that panics fails the call, like work that does.
func (w *Worker) commit(ctx context.Context, work ledger.Work, o ledger.Outcome) (ledger.Finished, error) {
	var failed *ledger.Outcome
	if effect := o.Effect; effect != nil {
		o.Effect = func(ctx context.Context, q *db.Queries) (err error) {
			defer func() {
				if p := recover(); p != nil {
					outcome := w.panicked(work)
					failed, err = &outcome, errors.New("the effect of the call panicked")
				}
			}()
			return effect(ctx, q)
		}
	}
	f, err := w.Ledger.Finish(ctx, work, o)
	if err != nil && failed != nil {
		return w.Ledger.Finish(ctx, work, *failed)
	}
	return f, err
}

// Finish commits an outcome, then tells the result and publishes the next call, both before it returns.
func (w *Worker) Finish(ctx context.Context, work ledger.Work, o ledger.Outcome) error {
	f, err := w.commit(ctx, work, o)
	if err != nil {
		return err
	}
	w.Log.Debug().Str("conversation", work.Key.Conversation).Str("turn", work.Key.Turn).Str("call", work.Key.Call).
		Str("tool", work.Tool).Int64("seq", work.Seq).Str("status", string(f.Result.Status)).Str("code", string(f.Result.Code)).
		Int("attempt", f.Result.Attempt).Dur("took", f.Result.FinishedAt.Sub(f.Result.StartedAt)).Msg("call done")
	// From here on the call is done whatever happens; what is not told or published the sweeper makes up for.
	var g errgroup.Group
	if f.Next != nil {
		g.Go(func() error { return w.Queue.PublishEvent(ctx, *f.Next) })
	}
	if err := w.Teller.Tell(ctx, work.Key, f.Told); err != nil {
		w.Log.Warn().Err(err).Str("conversation", work.Key.Conversation).Str("call", work.Key.Call).Msg("result not told yet")
	}
	if err := g.Wait(); err != nil {
		w.Log.Warn().Err(err).Str("conversation", work.Key.Conversation).Msg("next call not published yet")
	}
	return nil
}

// NoHandler is the outcome of a call that came to a lane which has no handler for its tool: trying it again would not help.
func (w *Worker) NoHandler(work ledger.Work) ledger.Outcome {
	w.Log.Error().Str("conversation", work.Key.Conversation).Str("turn", work.Key.Turn).Str("call", work.Key.Call).
		Str("tool", work.Tool).Str("lane", w.Lane).Msg("no handler for a call")
	return ledger.FailedOutcome(call.Internal, fmt.Sprintf("The system has no way to do %s. Nothing was changed.", work.Tool))
}

// Internal wraps an error of the system with the tool that met it.
func Internal(tool string, err error) error { return fmt.Errorf("do %s: %w", tool, err) }
