package worker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"

	"treeline/internal/call"
	"treeline/internal/ledger"
)

// Why a held call is to stop, as the cause of its context's end.
var (
	errCancelAsked = errors.New("cancelling was asked for")
	errLeaseRanOut = errors.New("the lease ran out while the database was away")
)

const (
	// afterStop is how long a result that is there may take to be committed once the worker is told to stop at once.
	afterStop = 5 * time.Second
	// handBackWithin bounds handing one call back.
	handBackWithin = 5 * time.Second
)

// hold claims a call, does it while it keeps the lease, and finishes it.
//
//	claim ─┬─ done ─────────────────── finish (tried again while the database is away)
//	       ├─ cancelling asked for ─── finish as cancelled
//	       ├─ lease another's or out ─ discard
//	       └─ told to stop at once ─── hand back, which costs no attempt
func (w *Worker) hold(ctx context.Context, e ledger.Event, work ledger.Work) error {
	// Watched before the claim: a cancelling that comes before it ends the waiting call instead.
	asked, forget := w.held.add(work.Key)
	defer forget()
	begun := time.Now()
	work, err := w.Ledger.Claim(ctx, work)
	if err != nil {
		return err
	}
	if !e.Fresh { // it may have been cancelled while an earlier worker had it
		w.held.ask(work.Key)
	}
	doing, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	beats, endBeats := context.WithCancel(context.WithoutCancel(ctx))
	var beating sync.WaitGroup
	beating.Go(func() { w.beat(beats, work, begun, asked, stop) })
	defer beating.Wait()
	defer endBeats()

	outcome, err := w.doPatiently(doing, work)
	if err == nil {
		return w.finishHeld(ctx, e, work, outcome)
	}
	switch cause := context.Cause(doing); {
	case errors.Is(cause, errCancelAsked):
		return w.finishHeld(ctx, e, work, ledger.FailedOutcome(call.Cancelled, "The call was cancelled. Nothing of it was kept."))
	case errors.Is(cause, ledger.ErrFenced), errors.Is(cause, errLeaseRanOut):
		w.Log.Info().Str("conversation", work.Key.Conversation).Str("turn", work.Key.Turn).Str("call", work.Key.Call).
			Str("why", cause.Error()).Msg("call discarded")
		return ledger.ErrFenced
	case ctx.Err() != nil:
		return w.handBack(ctx, work)
	}
	return err
}

// doPatiently does the call, again while the system is not ready for it and the lease lasts.
func (w *Worker) doPatiently(ctx context.Context, work ledger.Work) (o ledger.Outcome, err error) {
	b := backoff.NewExponentialBackOff(backoff.WithInitialInterval(100*time.Millisecond), backoff.WithMaxInterval(2*time.Second),
		backoff.WithMaxElapsedTime(retryFor))
	err = backoff.RetryNotify(func() error {
		o, err = w.do(ctx, work)
		return err
	}, backoff.WithContext(b, ctx), func(err error, d time.Duration) {
		w.Log.Warn().Err(err).Dur("again_in", d).Str("conversation", work.Key.Conversation).Str("call", work.Key.Call).
			Msg("call not done yet")
	})
	return o, err
}

// beat extends the lease at a third of it, and at once when cancelling may have been asked for. It stops the work once the
// call is another's, is to be cancelled, or has been out of the database's sight for a whole lease.
func (w *Worker) beat(ctx context.Context, work ledger.Work, extended time.Time, asked <-chan struct{}, stop context.CancelCauseFunc) {
	lease := w.Ledger.Config().Lease
	timer := time.NewTimer(lease / 3)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-asked:
		}
		begun := time.Now()
		cancel, err := w.beatOnce(ctx, work, lease/3)
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, ledger.ErrFenced):
			stop(ledger.ErrFenced)
			return
		case err != nil && time.Since(extended) >= lease:
			stop(errLeaseRanOut)
			return
		case err != nil:
			w.Log.Warn().Err(err).Str("conversation", work.Key.Conversation).Str("call", work.Key.Call).Msg("lease not extended yet")
			timer.Reset(min(lease/20, time.Second))
			continue
		case cancel:
			stop(errCancelAsked)
		}
		extended = begun
		timer.Reset(lease / 3)
	}
}

func (w *Worker) beatOnce(ctx context.Context, work ledger.Work, within time.Duration) (cancel bool, err error) {
	ctx, end := context.WithTimeout(ctx, within)
	defer end()
	return w.Ledger.Heartbeat(ctx, work)
}

// finishHeld finishes a call that may have taken long, so that its outcome is not given up lightly: while the database is
// away it is tried again, for as long as a lease or more. Past the lease too the fence decides alone.
func (w *Worker) finishHeld(ctx context.Context, e ledger.Event, work ledger.Work, o ledger.Outcome) error {
	ctx, end := outlive(ctx, afterStop)
	defer end()
	b := backoff.NewExponentialBackOff(backoff.WithInitialInterval(50*time.Millisecond), backoff.WithMaxInterval(time.Second),
		backoff.WithMaxElapsedTime(max(retryFor, w.Ledger.Config().Lease)))
	unsure := false
	err := backoff.Retry(func() error {
		err := w.Finish(ctx, work, o)
		if errors.Is(err, ledger.ErrFenced) {
			return backoff.Permanent(err)
		}
		unsure = unsure || err != nil
		return err
	}, backoff.WithContext(b, ctx))
	if !unsure || !errors.Is(err, ledger.ErrFenced) {
		return err
	}
	// It may be this worker itself that had committed before the answer was lost: then the result is yet to be told.
	again, state, err := w.Ledger.Look(ctx, e, false)
	if err != nil || state != ledger.Done {
		return ledger.ErrFenced
	}
	return w.notToDo(ctx, again, state)
}

// handBack releases the call for another worker.
func (w *Worker) handBack(ctx context.Context, work ledger.Work) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), handBackWithin)
	defer cancel()
	event, err := w.Ledger.HandBack(ctx, work)
	if err != nil {
		return err
	}
	w.Log.Info().Str("conversation", work.Key.Conversation).Str("turn", work.Key.Turn).Str("call", work.Key.Call).
		Msg("call handed back")
	return w.Queue.PublishEvent(ctx, event)
}

// outlive gives a context that ends a while after ctx does.
func outlive(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	out, cancel := context.WithCancel(context.WithoutCancel(ctx))
	unhook := context.AfterFunc(ctx, func() {
		timer := time.AfterFunc(d, cancel)
		<-out.Done()
		timer.Stop()
	})
	return out, func() { unhook(); cancel() }
}

// WatchCancels listens for calls whose cancelling is pushed, until stop is called. A push is a hint: the ledger is asked
// at once whether it is so. Without it, or where it is lost, the next heartbeat brings the news.
func (w *Worker) WatchCancels() (stop func(), err error) {
	stop, err = w.Queue.OnCancel(w.held.ask)
	if err != nil {
		return nil, fmt.Errorf("watch for cancelling: %w", err)
	}
	return stop, nil
}

// held are the calls in hand, each with the channel on which it is asked to look at the ledger now.
type held struct {
	mu    sync.Mutex
	calls map[chan struct{}]call.Key
}

func (h *held) add(k call.Key) (asked <-chan struct{}, forget func()) {
	ch := make(chan struct{}, 1)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.calls == nil {
		h.calls = map[chan struct{}]call.Key{}
	}
	h.calls[ch] = k
	return ch, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.calls, ch)
	}
}

func (h *held) ask(k call.Key) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for ch, has := range h.calls {
		if has != k {
			continue
		}
		select {
		case ch <- struct{}{}:
		default: // asked already
		}
	}
}
