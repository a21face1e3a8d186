package queue

import (
	"fmt"

	"github.com/nats-io/nats.go"

	"treeline/internal/call"
)

// Subscription ends with Stop; stopping twice is fine.
type Subscription struct{ sub *nats.Subscription }

// Stop ends the subscription.
func (s Subscription) Stop() {
	if s.sub != nil {
		_ = s.sub.Unsubscribe() // an error says that it has ended already
	}
}

// AwaitResult subscribes to the telling of one call. The channel gets at most a few messages and is never closed.
// Subscribe before the call is accepted: what is told earlier is not seen.
func (q *Queue) AwaitResult(k call.Key) (<-chan []byte, Subscription, error) {
	ch := make(chan []byte, 1)
	sub, err := q.nc.Subscribe(ResultSubject(k), func(m *nats.Msg) {
		select {
		case ch <- m.Data:
		default: // told again: the first one is enough
		}
	})
	if err != nil {
		return nil, Subscription{}, fmt.Errorf("subscribe to the result of %s: %w", k, err)
	}
	return ch, Subscription{sub}, nil
}

// Told is one message of a turn: a result or a piece of progress.
type Told struct {
	Result bool
	Call   string
	Data   []byte
}

// WatchTurn subscribes to the results and the progress of a turn. handle must not block.
func (q *Queue) WatchTurn(conversation, turnID string, handle func(Told)) (stop func(), err error) {
	tail := conversation + "." + turnID + "."
	results, err := q.nc.Subscribe(resultsPrefix+tail+"*", func(m *nats.Msg) {
		handle(Told{Result: true, Call: m.Subject[len(resultsPrefix)+len(tail):], Data: m.Data})
	})
	if err != nil {
		return nil, fmt.Errorf("subscribe to the turn's results: %w", err)
	}
	progress, err := q.nc.Subscribe(progressPrefix+tail+"*", func(m *nats.Msg) {
		handle(Told{Call: m.Subject[len(progressPrefix)+len(tail):], Data: m.Data})
	})
	if err != nil {
		_ = results.Unsubscribe()
		return nil, fmt.Errorf("subscribe to the turn's progress: %w", err)
	}
	return func() { _, _ = results.Unsubscribe(), progress.Unsubscribe() }, nil
}

// OnCancel calls handle for each call whose cancelling is pushed. handle must not block.
func (q *Queue) OnCancel(handle func(k call.Key)) (stop func(), err error) {
	sub, err := q.nc.Subscribe(cancelPrefix+"*.*.*", func(m *nats.Msg) {
		if k, ok := keyOf(m.Subject[len(cancelPrefix):]); ok {
			handle(k)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("subscribe to cancelling: %w", err)
	}
	return func() { _ = sub.Unsubscribe() }, nil
}
