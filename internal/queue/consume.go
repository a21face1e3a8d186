package queue

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"treeline/internal/call"
	"treeline/internal/ledger"
)

// Delivery is an event in hand.
type Delivery struct {
	Event ledger.Event
	// First says that this is the first delivery of a fresh event: the call may be finished without a claim.
	First bool
}

// Handler does what an event asks for. It returns nil once everything is settled, and the event is then acknowledged;
// after an error the event comes again when AckWait is over, unless the sweeper is quicker. ctx ends when the consumer is
// told to stop at once.
type Handler func(ctx context.Context, d Delivery) error

// Consume takes events of one lane, at most slots at a time, and only ever asks for what can start now. It returns when
// stop is done and all that was in hand is settled, or when ctx ends.
func (q *Queue) Consume(ctx context.Context, stop <-chan struct{}, lane string, slots int, handle Handler) error {
	held := newHeld(q.cfg.AckWait / 3)
	beats, endBeats := context.WithCancel(context.WithoutCancel(ctx))
	defer endBeats()
	var g errgroup.Group
	for range slots {
		g.Go(func() error { q.slot(ctx, stop, lane, held, handle); return nil })
	}
	var beating sync.WaitGroup
	beating.Go(func() { held.beat(beats) })
	err := g.Wait()
	endBeats()
	beating.Wait()
	return err
}

// slot does one event after another.
func (q *Queue) slot(ctx context.Context, stop <-chan struct{}, lane string, held *held, handle Handler) {
	for pause := 50 * time.Millisecond; ; pause = min(max(2*pause, 50*time.Millisecond), 2*time.Second) {
		began := time.Now()
		err := q.pull(ctx, stop, lane, held, handle)
		if ended(ctx, stop) {
			return
		}
		if err == nil {
			pause = 0
			continue
		}
		if time.Since(began) > 10*time.Second {
			pause = 50 * time.Millisecond
		}
		q.log.Warn().Err(err).Str("lane", lane).Dur("again_in", pause).Msg("consuming broke off")
		select {
		case <-ctx.Done():
			return
		case <-stop:
			return
		case <-time.After(pause):
		}
		if errors.Is(err, jetstream.ErrConsumerNotFound) || errors.Is(err, jetstream.ErrStreamNotFound) ||
			errors.Is(err, jetstream.ErrConsumerDeleted) {
			// The server lost them while the connection stayed up.
			if err := q.setUp(ctx); err != nil {
				q.log.Warn().Err(err).Msg("set the streams up again")
			}
		}
	}
}

func ended(ctx context.Context, stop <-chan struct{}) bool {
	select {
	case <-stop:
		return true
	default:
		return ctx.Err() != nil
	}
}

func (q *Queue) deliver(ctx context.Context, m *nats.Msg, held *held, handle Handler) {
	var d Delivery
	if err := json.Unmarshal(m.Data, &d.Event); err != nil || !wellFormed(d.Event) {
		q.log.Warn().Str("subject", m.Subject).Msg("an event that is none was dropped")
		_ = m.Term()
		return
	}
	if meta, err := m.Metadata(); err == nil {
		d.First = d.Event.Fresh && meta.NumDelivered == 1
	}
	held.add(m)
	err := handle(ctx, d)
	held.remove(m)
	k := d.Event.Key()
	if err != nil {
		q.log.Warn().Err(err).Str("conversation", k.Conversation).Str("turn", k.Turn).Str("call", k.Call).Msg("event not settled")
		return
	}
	if err := m.Ack(); err != nil {
		q.log.Warn().Err(err).Str("conversation", k.Conversation).Str("turn", k.Turn).Str("call", k.Call).Msg("event not acknowledged")
	}
}

func wellFormed(e ledger.Event) bool {
	return call.ValidID(e.Conversation) && call.ValidID(e.Turn) && call.ValidID(e.Call)
}

func keyOf(tail string) (call.Key, bool) {
	parts := strings.Split(tail, ".")
	if len(parts) != 3 {
		return call.Key{}, false
	}
	return call.Key{Conversation: parts[0], Turn: parts[1], Call: parts[2]}, true
}

// held are the deliveries in hand; a sign of life for each keeps the server from delivering them again.
type held struct {
	every time.Duration
	mu    sync.Mutex
	msgs  map[*nats.Msg]struct{}
}

func newHeld(every time.Duration) *held {
	return &held{every: every, msgs: map[*nats.Msg]struct{}{}}
}

func (h *held) add(m *nats.Msg) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.msgs[m] = struct{}{}
}

func (h *held) remove(m *nats.Msg) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.msgs, m)
}

func (h *held) beat(ctx context.Context) {
	tick := time.NewTicker(h.every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		h.mu.Lock()
		for m := range h.msgs {
			_ = m.InProgress() // while cut off there is nobody to tell
		}
		h.mu.Unlock()
	}
}
