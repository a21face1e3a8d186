package ledger

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"treeline/internal/call"
	"treeline/internal/store/db"
)

// Telling is the proof that a result was told: when the stream that holds it was made, and its place there.
type Telling struct {
	Key    call.Key
	Stream time.Time
	Seq    int64
}

// Bus is what the ledger needs of the queue.
type Bus interface {
	// PublishEvent publishes a call-ready event and returns once the stream has it.
	PublishEvent(ctx context.Context, e Event) error
	// PublishResult publishes a result in its wire form and returns once the stream has it.
	PublishResult(ctx context.Context, k call.Key, result []byte) (Telling, error)
	// PublishCancel asks whoever runs a call to stop; it may be lost.
	PublishCancel(k call.Key) error
	// PurgeConversation removes a conversation's results from the stream.
	PurgeConversation(ctx context.Context, conversation string) error
}

// Teller publishes results and keeps, in batches, that they were told. What it has not kept when it ends, the sweeper
// tells again.
type Teller struct {
	l   *Ledger
	bus Bus
	log zerolog.Logger

	told chan Telling
	wg   sync.WaitGroup
	soon chan struct{} // one for each result that is on its way
	// live ends with the patience for what is on its way when Run is to end.
	live context.Context
	end  context.CancelFunc
}

const (
	tellBatch = 200
	tellEvery = 100 * time.Millisecond
	// soonAtOnce bounds the results that are on their way without anybody waiting for them.
	soonAtOnce = 512
)

// NewTeller makes a teller; Run must be called for what was told to be kept.
func NewTeller(l *Ledger, bus Bus, log zerolog.Logger) *Teller {
	t := &Teller{l: l, bus: bus, log: log, told: make(chan Telling, 4*tellBatch), soon: make(chan struct{}, soonAtOnce)}
	t.live, t.end = context.WithCancel(context.Background())
	return t
}

// Tell publishes one result and returns once the stream has it.
func (t *Teller) Tell(ctx context.Context, k call.Key, result []byte) error {
	proof, err := t.bus.PublishResult(ctx, k, result)
	if err != nil {
		return fmt.Errorf("tell the result of %s: %w", k, err)
	}
	select {
	case t.told <- proof:
	default: // the batches lag behind; the sweeper tells it once more
	}
	return nil
}

// TellSoon publishes a result without making the caller wait; Run waits for all of these when it ends. While the queue is
// away and many are on their way, it leaves the result to the sweeper.
func (t *Teller) TellSoon(ctx context.Context, k call.Key, result []byte) {
	select {
	case t.soon <- struct{}{}:
	default:
		return
	}
	ctx = context.WithoutCancel(ctx)
	t.wg.Go(func() {
		defer func() { <-t.soon }()
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		defer context.AfterFunc(t.live, cancel)()
		if err := t.Tell(ctx, k, result); err != nil {
			t.log.Warn().Err(err).Str("conversation", k.Conversation).Str("turn", k.Turn).Str("call", k.Call).
				Msg("result not told yet; the sweeper will")
		}
	})
}

// Run keeps what was told until ctx ends, then what is left.
func (t *Teller) Run(ctx context.Context) error {
	tick := time.NewTicker(tellEvery)
	defer tick.Stop()
	var batch []Telling
	behind := false // the database did not take the last batch: it is tried again at the next tick, not with each telling
	for {
		select {
		case <-ctx.Done():
			patience := time.AfterFunc(drainWithin, t.end)
			t.wg.Wait()
			patience.Stop()
			return t.drain(batch)
		case p := <-t.told:
			if batch = append(batch, p); len(batch) < tellBatch || behind {
				continue
			}
		case <-tick.C:
		}
		batch = t.keep(ctx, batch)
		behind = len(batch) > 0
	}
}

// drainWithin bounds what a stop waits for the queue, and then for the database: what is not told or kept by then is told again.
const drainWithin = 2 * time.Second

func (t *Teller) drain(batch []Telling) error {
	ctx, cancel := context.WithTimeout(context.Background(), drainWithin)
	defer cancel()
	for {
		select {
		case p := <-t.told:
			batch = append(batch, p)
			continue
		default:
		}
		if left := t.keep(ctx, batch); len(left) > 0 {
			return fmt.Errorf("keep that %d results were told: they will be told again", len(left))
		}
		return nil
	}
}

// keep writes a batch, and gives it back if the database did not take it.
func (t *Teller) keep(ctx context.Context, batch []Telling) []Telling {
	if len(batch) == 0 {
		return nil
	}
	p := db.MarkToldParams{}
	for _, b := range batch {
		p.Turns, p.Calls = append(p.Turns, b.Key.Turn), append(p.Calls, b.Key.Call)
		p.Streams, p.Seqs = append(p.Streams, b.Stream), append(p.Seqs, b.Seq)
	}
	if err := t.l.markTold(ctx, p); err != nil {
		if ctx.Err() != nil {
			return batch // the last of it is kept when all is drained
		}
		t.log.Warn().Err(err).Int("results", len(batch)).Msg("not kept that results were told")
		if len(batch) > 10*tellBatch {
			return nil // the sweeper tells them again
		}
		return batch
	}
	return nil
}

// markTold does not wait for the disk: what a crash of the database forgets is told again.
func (l *Ledger) markTold(ctx context.Context, told db.MarkToldParams) error {
	return l.inPipeline(ctx, "keep what was told", func(t *tx) error {
		t.lazy = true
		p := t.pipeline()
		db.Queue(p, (*db.Queries).MarkTold, told)
		return t.commit(ctx, p)
	})
}

// Retell looks at a call that an event points at and that is not there to be done: it gives the result to tell again,
// if the call is done, and the event of the conversation's present head, if that waits for a worker.
func (l *Ledger) Retell(ctx context.Context, k call.Key) (result []byte, head *Event, err error) {
	c, err := l.q.Call(ctx, db.CallParams{TurnID: k.Turn, CallID: k.Call})
	if err != nil {
		return nil, nil, fmt.Errorf("read the call: %w", err)
	}
	if c.State == string(Done) {
		if result, err = toldForm(c); err != nil {
			return nil, nil, err
		}
	}
	heads, err := l.q.Heads(ctx, k.Conversation)
	if err != nil {
		return result, nil, fmt.Errorf("look for the head: %w", err)
	}
	for _, h := range heads {
		if h.State == string(Released) {
			head = &Event{Conversation: k.Conversation, Turn: h.TurnID, Call: h.CallID, Lane: h.Lane, Seq: h.Seq, Generation: h.Generation}
		}
	}
	return result, head, nil
}

// toldForm is the wire form of a done call's result, also where a deletion has dropped its bytes.
func toldForm(c db.Call) ([]byte, error) {
	if c.Result != nil {
		return c.Result, nil
	}
	return DroppedResult(call.Key{Conversation: c.ConversationID, Turn: c.TurnID, Call: c.CallID}, c.Tool, c.Seq,
		deref(c.Status), c.Code, int(c.Attempt), c.ResultRef, c.AcceptedAt, c.FinishedAt)
}

// DroppedResult is what is left to tell of a call whose conversation was deleted.
func DroppedResult(k call.Key, tool string, seq int64, status, code string, attempt int, ref string, started time.Time,
	finished *time.Time) ([]byte, error) {
	res := call.Result{CallID: k.Call, TurnID: k.Turn, ConversationID: k.Conversation, Tool: tool, Seq: seq,
		Status: call.Status(status), Code: call.Code(code), IsError: status != string(call.OK), Data: json.RawMessage("{}"),
		Changes: call.Changes{}.Normal(), ResultRef: ref, ReplayArguments: json.RawMessage("{}"), Attempt: attempt,
		StartedAt: started.UTC(), Content: []call.Content{call.Text(refuseDeleted().Text)}}
	if finished != nil {
		res.FinishedAt = finished.UTC()
	}
	b, err := json.Marshal(res)
	if err != nil {
		return nil, fmt.Errorf("encode the result: %w", err)
	}
	return b, nil
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
