package ledger

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"treeline/internal/call"
	"treeline/internal/store/db"
	"treeline/internal/turn"
)

// NewCall is a call that passed the door, or was refused there.
type NewCall struct {
	ID, Tool, Kind, Lane string
	// Actor is the person who acts, for the portal's own calls.
	Actor string
	// Arguments are kept for the worker; Digest tells whether a call id is used again with others.
	Arguments []byte
	Digest    [32]byte
	Paths     []string
	// Done is the answer of a call that is done as it arrives: it touches no workspace, or the door refused it. Such a
	// call has seq 0 and never waits.
	Done *Outcome
}

// Accepted says what became of a call.
type Accepted struct {
	Seq int64
	// Duplicate says that the call was known: nothing new was written.
	Duplicate bool
	State     State
	// Result is set where the call is done; Told is its wire form where it is new and is to be told.
	Result *call.Result
	Told   []byte
	// Event is to be published: the call is the head of its conversation.
	Event *Event
}

// Accept writes calls of one turn to the ledger, in order, all or none. A call that is known already is answered with
// what is known of it. It returns a *call.Refusal for conversation_deleted, turn_closed, busy and call_id_reused.
func (l *Ledger) Accept(ctx context.Context, tn turn.Turn, calls []NewCall) ([]Accepted, error) {
	out, err := l.acceptAll(ctx, tn, calls, false)
	if err == nil && anyUnfinishedDuplicate(out) {
		err = l.Flush(ctx) // the one who sent it first may not have waited for the disk
	}
	return out, err
}

// AcceptLazily accepts one call like Accept, for a caller that waits for the result, and does not wait for the disk: the
// finishing transaction does, and keeps both or neither. Nobody may be told that the call is accepted before Flush has
// returned and the call is still there.
func (l *Ledger) AcceptLazily(ctx context.Context, tn turn.Turn, c NewCall) (Accepted, error) {
	out, err := l.acceptAll(ctx, tn, []NewCall{c}, c.Done == nil)
	if err != nil {
		return Accepted{}, err
	}
	return out[0], nil
}

// Flush returns once everything that was committed before is on the database's disk.
func (l *Ledger) Flush(ctx context.Context) error {
	if err := l.q.Flush(ctx); err != nil {
		return fmt.Errorf("flush what was accepted: %w", err)
	}
	return nil
}

func anyUnfinishedDuplicate(accepted []Accepted) bool {
	for _, a := range accepted {
		if a.Duplicate && a.State != Done {
			return true
		}
	}
	return false
}

func (l *Ledger) acceptAll(ctx context.Context, tn turn.Turn, calls []NewCall, lazy bool) ([]Accepted, error) {
	if len(calls) == 1 && calls[0].Done == nil {
		if a, ok := l.acceptPlain(ctx, tn, calls[0], lazy); ok {
			return []Accepted{a}, nil
		}
	}
	var out []Accepted
	err := l.inPipeline(ctx, "accept calls", func(t *tx) error {
		var err error
		t.lazy = lazy
		out, err = l.accept(ctx, t, tn, calls)
		return err
	})
	return out, err
}

// acceptPlain accepts one call that nothing stands against, in one statement. Where something does (the id is known, the turn
// is closed, too many wait), or anything goes wrong, it leaves no trace and says no: the long way finds out.
func (l *Ledger) acceptPlain(ctx context.Context, tn turn.Turn, c NewCall, lazy bool) (Accepted, bool) {
	place, err := l.q.AcceptPlain(ctx, db.AcceptPlainParams{
		ConversationID: tn.Conversation, TurnID: tn.ID, Most: int32(l.cfg.Limits.WaitingCalls), Lazily: lazy,
		CallID: c.ID, Tool: c.Tool, Kind: c.Kind, Lane: c.Lane, Actor: c.Actor,
		Arguments: orEmpty(c.Arguments), ArgumentsSha256: c.Digest[:], Paths: orNone(c.Paths), DueAfter: l.freshDue(),
		ResultRef: ResultRef(call.Key{Conversation: tn.Conversation, Turn: tn.ID, Call: c.ID}),
	})
	if err != nil {
		return Accepted{}, false
	}
	a := Accepted{Seq: place.LastSeq, State: Queued}
	if place.Open == 1 {
		a.State = Released
		a.Event = &Event{Conversation: tn.Conversation, Turn: tn.ID, Call: c.ID, Lane: c.Lane, Seq: place.LastSeq,
			Generation: place.Generation, Fresh: true, Alone: true}
	}
	return a, true
}

func (l *Ledger) accept(ctx context.Context, t *tx, tn turn.Turn, calls []NewCall) ([]Accepted, error) {
	s, err := seen(ctx, t, tn, calls)
	if err != nil {
		return nil, err
	}
	known, err := s.known(tn, calls)
	if err != nil {
		return nil, err
	}
	if !s.facts.TakesCalls && !allKnown(known) {
		return nil, refuseClosed()
	}
	fresh := countFresh(calls, known)
	if waiting := int(s.facts.Open) + fresh - 1; fresh > 0 && waiting > l.cfg.Limits.WaitingCalls {
		return nil, call.Refuse(call.Busy, "%d calls of this conversation are waiting already, and at most %d may. "+
			"Nothing was done; send the same call again in a moment.", max(0, int(s.facts.Open)-1), l.cfg.Limits.WaitingCalls)
	}
	w := writer{p: t.pipeline(), turn: tn, due: l.freshDue(), generation: s.generation, first: s.facts.Open == 0, seq: s.facts.LastSeq}
	if fresh > 0 {
		db.Queue(w.p, (*db.Queries).TakeSeqs, db.TakeSeqsParams{ID: tn.Conversation, N: int64(fresh)})
	}
	out := make([]Accepted, len(calls))
	written := make([]int64, len(calls))
	for i, c := range calls {
		switch {
		case known[i] != nil:
			out[i] = *known[i]
		case c.Done == nil:
			out[i] = w.write(c)
		default:
			if out[i], err = l.writeDone(&w, c, &written[i]); err != nil {
				return nil, err
			}
		}
	}
	if len(calls) > 1 && fresh < len(calls) { // all or none of a step: it is looked at before it is committed
		if err := w.p.Send(ctx, t.conn); err != nil {
			return nil, fmt.Errorf("write the calls: %w", err)
		}
		if metAnother(calls, known, written) {
			return nil, errMoved
		}
		w.p = t.pipeline()
	}
	if err := t.commit(ctx, w.p); err != nil {
		return nil, fmt.Errorf("write the calls: %w", err)
	}
	if metAnother(calls, known, written) {
		return nil, errMoved
	}
	return out, nil
}

// metAnother reports that the same call came twice at once, and the other one wrote it: what became of it is to be looked
// at again.
func metAnother(calls []NewCall, known []*Accepted, written []int64) bool {
	for i, c := range calls {
		if known[i] == nil && c.Done != nil && written[i] == 0 {
			return true
		}
	}
	return false
}

// sight is what an accept sees once it has the lock.
type sight struct {
	generation int64
	facts      db.AcceptFactsRow
	rows       []db.ExistingCallsRow
}

// seen takes the lock and, in statements that begin after it was taken, looks at what is decided upon.
func seen(ctx context.Context, t *tx, tn turn.Turn, calls []NewCall) (sight, error) {
	var s sight
	var row db.LockConversationRow
	var there, turnThere bool
	ids := make([]string, len(calls))
	for i, c := range calls {
		ids[i] = c.ID
	}
	p := t.pipeline()
	if anyWaits(calls) {
		p.LockConversation(tn.Conversation, &there, &row)
	} else {
		p.ShareConversation(tn.Conversation, &there, &row)
	}
	p.AcceptFacts(tn.ID, &turnThere, &s.facts)
	p.ExistingCalls(db.ExistingCallsParams{TurnID: tn.ID, CallIds: ids}, &s.rows)
	if err := p.Send(ctx, t.conn); err != nil {
		return s, fmt.Errorf("lock the conversation and read the turn: %w", err)
	}
	if !there || !turnThere {
		return s, ErrNotThere
	}
	var err error
	s.generation, err = locked(row.Generation, row.DeletedAt, nil)
	return s, err
}

func anyWaits(calls []NewCall) bool {
	for _, c := range calls {
		if c.Done == nil {
			return true
		}
	}
	return false
}

func allKnown(known []*Accepted) bool {
	for _, k := range known {
		if k == nil {
			return false
		}
	}
	return true
}

func countFresh(calls []NewCall, known []*Accepted) int {
	n := 0
	for i, c := range calls {
		if known[i] == nil && c.Done == nil {
			n++
		}
	}
	return n
}

// known sorts out the calls whose ids the turn has used: a call sent again is answered with what became of it, and an id
// used for other arguments is refused.
func (s sight) known(t turn.Turn, calls []NewCall) ([]*Accepted, error) {
	out := make([]*Accepted, len(calls))
	for _, r := range s.rows {
		if r.Generation != s.generation {
			continue // of before a deletion: the turn takes no calls any more
		}
		for i, c := range calls {
			if c.ID != r.CallID {
				continue
			}
			if !bytes.Equal(r.ArgumentsSha256, c.Digest[:]) || r.Tool != c.Tool {
				return nil, refuseReused(c.ID, r.Tool)
			}
			var err error
			if out[i], err = knownCall(t, r); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

func refuseReused(id, tool string) *call.Refusal {
	r := call.Refuse(call.CallIDReused, "The call id %q was used in this turn for a call of %s with other arguments. "+
		"Nothing was done; send this call under a new id.", id, tool)
	r.CallID = id
	return r
}

func knownCall(t turn.Turn, r db.ExistingCallsRow) (*Accepted, error) {
	a := &Accepted{Seq: r.Seq, State: State(r.State), Duplicate: true}
	switch r.State {
	case "done":
		a.Result = &call.Result{}
		if err := json.Unmarshal(r.Result, a.Result); err != nil {
			return nil, fmt.Errorf("read the stored result of call %s: %w", r.CallID, err)
		}
	case "released":
		// Its event may be lost; publishing it again costs nothing.
		a.Event = &Event{Conversation: t.Conversation, Turn: t.ID, Call: r.CallID, Lane: r.Lane, Seq: r.Seq, Generation: r.Generation}
	}
	return a, nil
}

// writer is what the writing of one accepted step carries along.
type writer struct {
	p          *db.Pipeline
	turn       turn.Turn
	generation int64
	seq        int64 // the last one given
	first      bool  // the next call that waits is the conversation's head
	due        float64
}

func (w *writer) key(c NewCall) call.Key {
	return call.Key{Conversation: w.turn.Conversation, Turn: w.turn.ID, Call: c.ID}
}

func (w *writer) write(c NewCall) Accepted {
	w.seq++
	a := Accepted{Seq: w.seq, State: Queued}
	if w.first {
		w.first, a.State = false, Released
		a.Event = &Event{Conversation: w.turn.Conversation, Turn: w.turn.ID, Call: c.ID, Lane: c.Lane, Seq: w.seq,
			Generation: w.generation, Fresh: true}
	}
	db.Queue(w.p, (*db.Queries).InsertCall, db.InsertCallParams{
		TurnID: w.turn.ID, CallID: c.ID, ConversationID: w.turn.Conversation, Generation: w.generation, Seq: w.seq,
		Tool: c.Tool, Kind: c.Kind, Lane: c.Lane, Actor: c.Actor, Arguments: orEmpty(c.Arguments), ArgumentsSha256: c.Digest[:],
		Paths: orNone(c.Paths), State: string(a.State), ResultRef: ResultRef(w.key(c)), DueAfter: w.due,
	})
	return a
}

func (l *Ledger) writeDone(w *writer, c NewCall, written *int64) (Accepted, error) {
	now := time.Now().UTC()
	facts := resultFacts{key: w.key(c), tool: c.Tool, attempt: 1, started: now, finished: now, arguments: c.Arguments}
	res, stored, err := l.compose(facts, *c.Done)
	if err != nil {
		return Accepted{}, err
	}
	w.p.InsertDoneCall(db.InsertDoneCallParams{
		TurnID: w.turn.ID, CallID: c.ID, ConversationID: w.turn.Conversation, Generation: w.generation,
		Tool: c.Tool, Kind: c.Kind, Arguments: orEmpty(c.Arguments), ArgumentsSha256: c.Digest[:], Paths: orNone(c.Paths),
		Status: string(c.Done.Status), Code: string(c.Done.Code), Result: stored.told, Output: stored.output,
		ResultRef: res.ResultRef, StartedAt: &now, FinishedAt: &now, Attempt: 1,
	}, written)
	return Accepted{State: Done, Result: &res, Told: stored.told}, nil
}

func orEmpty(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

func orNone(s []string) []string {
	if s == nil {
		return []string{}
	}
	return s
}
