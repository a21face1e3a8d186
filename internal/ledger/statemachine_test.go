package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/rs/zerolog"
	"pgregory.net/rapid"

	"treeline/internal/call"
	"treeline/internal/turn"
	"treeline/internal/workspace"
)

// stream is a bus that takes everything and remembers it.
type stream struct {
	mu     sync.Mutex
	made   time.Time
	told   map[call.Key]int
	events map[call.Key]int
}

func newStream() *stream {
	return &stream{made: time.Now().UTC().Truncate(time.Microsecond), told: map[call.Key]int{}, events: map[call.Key]int{}}
}

func (s *stream) PublishEvent(_ context.Context, e Event) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events[e.Key()]++
	return nil
}

func (s *stream) PublishResult(_ context.Context, k call.Key, _ []byte) (Telling, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.told[k]++
	return Telling{Key: k, Stream: s.made, Seq: int64(len(s.told))}, nil
}

func (s *stream) PublishCancel(call.Key) error                    { return nil }
func (s *stream) PurgeConversation(context.Context, string) error { return nil }

// machine is one conversation and everybody who works on it: callers, workers with calls in hand, a sweeper.
type machine struct {
	*bench
	name    string
	sweeper *Sweeper
	teller  *Teller
	stream  *stream

	mu     sync.Mutex
	turn   turn.Turn
	turns  int
	n      int
	calls  []string          // of the present turn
	hands  []Work            // what workers have in hand, claimed or not; some of it is stale
	claims map[call.Key]Work // the newest claim of each call
	kept   map[string]bool   // files that finished calls wrote, in the present generation
	err    error
}

// superseded reports whether the call has been claimed anew since w was: then w is of no use for ever.
func (m *machine) superseded(w Work) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return w.Claimed() && m.claims[w.Key].token != w.token
}

// op is something that somebody does. It is drawn first and done later, beside others.
type op func(ctx context.Context)

func (m *machine) fail(format string, args ...any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.err = errors.Join(m.err, fmt.Errorf(format, args...))
}

// odd reports an error that no interleaving may give.
func (m *machine) odd(what string, err error) bool {
	var refusal *call.Refusal
	if err == nil || errors.As(err, &refusal) || errors.Is(err, ErrFenced) || errors.Is(err, ErrNotThere) {
		return false
	}
	m.fail("%s: %w", what, err)
	return true
}

func (m *machine) accept(t *rapid.T) op {
	n, already := rapid.IntRange(1, 3).Draw(t, "calls"), rapid.Bool().Draw(t, "and answered ones")
	return func(ctx context.Context) {
		m.mu.Lock()
		tn, calls, ids := m.turn, []NewCall{}, []string{}
		for range n {
			m.n++
			ids = append(ids, fmt.Sprintf("c%d", m.n))
			calls = append(calls, newCall(ids[len(ids)-1]))
		}
		m.calls = append(m.calls, ids...)
		m.mu.Unlock()
		if already {
			o := done("at once")
			calls[0].Done, calls[0].Lane = &o, "none"
		}
		_, err := m.Accept(ctx, tn, calls)
		m.odd("accept", err)
	}
}

func (m *machine) duplicate(t *rapid.T) op {
	i := rapid.IntRange(0, 1000).Draw(t, "which")
	return func(ctx context.Context) {
		m.mu.Lock()
		if len(m.calls) == 0 {
			m.mu.Unlock()
			return
		}
		tn, id := m.turn, m.calls[i%len(m.calls)]
		m.mu.Unlock()
		_, err := m.Accept(ctx, tn, []NewCall{newCall(id)})
		m.odd("accept again", err)
	}
}

// take has a worker look at the head, and claim it or keep it unclaimed as a first delivery.
func (m *machine) take(t *rapid.T) op {
	claim := rapid.Bool().Draw(t, "claims")
	return func(ctx context.Context) {
		heads, err := m.q.Heads(ctx, m.name)
		if m.odd("look for the head", err) || len(heads) == 0 {
			return
		}
		w, state, err := m.Look(ctx, Event{Conversation: m.name, Turn: heads[0].TurnID, Call: heads[0].CallID}, false)
		if m.odd("look", err) || err != nil || state != Released {
			return
		}
		if claim {
			if w, err = m.Claim(ctx, w); m.odd("claim", err) || err != nil {
				return
			}
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		m.hands = append(m.hands, w)
		if w.Claimed() && w.Attempt >= m.claims[w.Key].Attempt { // else another has taken it over before this was noted
			m.claims[w.Key] = w
		}
	}
}

// hand draws one of the calls in hand; it stays there, so that it is used again when it is stale.
func (m *machine) hand(i int) (Work, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.hands) == 0 {
		return Work{}, false
	}
	return m.hands[len(m.hands)-1-i%min(4, len(m.hands))], true
}

func (m *machine) finish(t *rapid.T) op {
	i := rapid.IntRange(0, 3).Draw(t, "hand")
	return func(ctx context.Context) {
		w, ok := m.hand(i)
		if !ok {
			return
		}
		path := w.Key.Call
		e := workspace.NewEntry(path, []byte(path), w.Seq)
		o := done("written")
		o.Changes = []Change{{Path: path, After: &e, Content: []byte(path), MIMEType: "text/plain"}}
		stale := m.superseded(w)
		f, err := m.Finish(ctx, w, o)
		if err == nil && stale {
			m.fail("call %s was finished under a claim that another had followed", path)
		}
		if m.odd("finish", err) || err != nil || f.Result.Status != call.OK {
			return
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		if w.Generation == m.turn.Generation {
			if m.kept[path] {
				m.err = errors.Join(m.err, fmt.Errorf("call %s took effect twice", path))
			}
			m.kept[path] = true
		}
	}
}

func (m *machine) heartbeat(t *rapid.T) op {
	i := rapid.IntRange(0, 3).Draw(t, "hand")
	return func(ctx context.Context) {
		if w, ok := m.hand(i); ok && w.Claimed() {
			_, err := m.Heartbeat(ctx, w)
			m.odd("heartbeat", err)
		}
	}
}

func (m *machine) handBack(t *rapid.T) op {
	i := rapid.IntRange(0, 3).Draw(t, "hand")
	return func(ctx context.Context) {
		if w, ok := m.hand(i); ok && w.Claimed() {
			_, err := m.HandBack(ctx, w)
			m.odd("hand back", err)
		}
	}
}

func (m *machine) cancel(t *rapid.T) op {
	i := rapid.IntRange(0, 1000).Draw(t, "which")
	return func(ctx context.Context) {
		m.mu.Lock()
		if len(m.calls) == 0 {
			m.mu.Unlock()
			return
		}
		tn, id := m.turn.ID, m.calls[i%len(m.calls)]
		m.mu.Unlock()
		_, err := m.Cancel(ctx, m.name, tn, id)
		if !errors.Is(err, errMoved) { // it moved on three times over: the caller asks again
			m.odd("cancel", err)
		}
	}
}

// sweep has the leases that are held run out, or not, and sweeps.
func (m *machine) sweep(t *rapid.T) op {
	late := rapid.Bool().Draw(t, "leases ran out")
	return func(ctx context.Context) {
		if late {
			_, err := m.pool.Exec(ctx, `UPDATE calls SET lease_until = clock_timestamp() - interval '1 second', next_at = clock_timestamp() - interval '1 second'
				WHERE conversation_id = $1 AND state = 'running'`, m.name)
			m.odd("have leases run out", err)
		}
		m.odd("sweep", m.sweeper.Sweep(ctx))
	}
}

func (m *machine) draw(t *rapid.T) op {
	kinds := []func(*rapid.T) op{m.accept, m.accept, m.duplicate, m.take, m.take, m.finish, m.finish, m.heartbeat, m.handBack, m.cancel, m.sweep}
	return kinds[rapid.IntRange(0, len(kinds)-1).Draw(t, "kind")](t)
}

// one does one thing.
func (m *machine) one(t *rapid.T) { m.draw(t)(m.t.Context()) }

// together does several things at once: all of them first wait for the conversation's lock, which somebody else holds, so
// that each has looked around before any has decided.
func (m *machine) together(t *rapid.T) {
	var ops []op
	for range rapid.IntRange(2, 4).Draw(t, "how many") {
		ops = append(ops, m.draw(t))
	}
	held := rapid.Bool().Draw(t, "behind the lock")
	ctx := m.t.Context()
	tx, err := m.pool.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if held {
		if _, err := tx.Exec(ctx, "SELECT 1 FROM conversations WHERE id = $1 FOR UPDATE", m.name); err != nil {
			t.Fatal(err)
		}
	}
	var wg sync.WaitGroup
	for _, o := range ops {
		wg.Go(func() { o(ctx) })
	}
	if held {
		time.Sleep(4 * time.Millisecond)
	}
	if err := tx.Rollback(ctx); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
}

// deleteAndRestore deletes the conversation, beside something else, and opens it again.
func (m *machine) deleteAndRestore(t *rapid.T) {
	other, ctx := m.draw(t), m.t.Context()
	var wg sync.WaitGroup
	wg.Go(func() { other(ctx) })
	_, err := m.Delete(ctx, m.name)
	wg.Wait()
	if err != nil {
		t.Fatal(err)
	}
	m.invariants(t)
	if err := m.Restore(ctx, m.name); err != nil {
		t.Fatal(err)
	}
	m.open()
}

// open opens a turn of the present generation.
func (m *machine) open() {
	m.turns++
	_, hash := turn.NewToken()
	c, err := m.Conversation(m.t.Context(), m.name)
	if err != nil {
		m.t.Fatal(err)
	}
	tn := turn.Turn{ID: fmt.Sprintf("%s-t%d", m.name, m.turns), Conversation: m.name, Generation: c.Generation, Caller: turn.Caller{User: "u", Department: "d"}}
	if err := m.OpenTurn(m.t.Context(), tn, hash); err != nil {
		m.t.Fatal(err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.turn, m.calls, m.kept = tn, nil, map[string]bool{}
}

// stateOfAll is what must hold whenever nobody is in the middle of something.
type stateOfAll struct {
	Open, Unfinished, Heads, Queued, Places, Attempts int
	LastSeq, HeadSeq, FirstSeq, Bytes, RealBytes      int64
	Files                                             []string
	Ordered                                           bool
}

func (m *machine) invariants(t *rapid.T) {
	rows, err := m.pool.Query(m.t.Context(), `SELECT c.open,
		count(*) FILTER (WHERE k.state <> 'done')::int, count(*) FILTER (WHERE k.state IN ('released', 'running'))::int,
		count(*) FILTER (WHERE k.state = 'queued')::int, count(*) FILTER (WHERE k.seq > 0)::int, coalesce(max(k.attempt), 0)::int,
		c.last_seq, coalesce(max(k.seq) FILTER (WHERE k.state IN ('released', 'running')), 0), coalesce(min(k.seq) FILTER (WHERE k.state <> 'done'), 0),
		c.bytes, (SELECT coalesce(sum(f.bytes), 0)::bigint FROM files f WHERE f.conversation_id = c.id),
		ARRAY(SELECT f.path::text FROM files f WHERE f.conversation_id = c.id ORDER BY f.path),
		coalesce((SELECT bool_and(ok) FROM (SELECT o.finished_at >= lag(o.finished_at, 1, '-infinity') OVER (ORDER BY o.seq) AS ok FROM calls o
			WHERE o.conversation_id = c.id AND o.seq > 0 AND o.status = 'ok') s), true)
		FROM conversations c LEFT JOIN calls k ON k.conversation_id = c.id WHERE c.id = $1 GROUP BY c.id`, m.name)
	if err != nil {
		t.Fatal(err)
	}
	s, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[stateOfAll])
	if err != nil {
		t.Fatal(err)
	}
	var kept []string
	for path := range m.kept {
		kept = append(kept, path)
	}
	slices.Sort(kept)
	c, err := m.Conversation(m.t.Context(), m.name)
	if err != nil {
		t.Fatal(err)
	}
	if c.DeletedAt != nil {
		kept = nil
	}
	for _, check := range []struct {
		holds bool
		what  string
	}{
		{m.err == nil, fmt.Sprint(m.err)},
		{s.Open == s.Unfinished, "open counts the unfinished calls"},
		{s.Heads <= 1, "at most one call is released or running"},
		{s.Queued == 0 || s.Heads == 1, "no call waits that nothing will release"},
		{s.HeadSeq == s.FirstSeq, "the head is the oldest unfinished call"},
		{int64(s.Places) == s.LastSeq, "each place in the order is given to one call"},
		{s.Attempts <= m.cfg.MaxAttempts, "attempts are bounded"},
		{s.Bytes == s.RealBytes, "the bytes counted are the bytes there"},
		{slices.Equal(s.Files, kept), fmt.Sprintf("each finished call took effect, once: %v are there, %v were finished", s.Files, kept)},
		{s.Ordered, "calls took effect in their order"},
	} {
		if !check.holds {
			t.Fatalf("it does not hold that: %s (%+v)", check.what, s)
		}
	}
}

// drain lets time pass, with one worker and the sweeper at work, until every call is done and told.
func (m *machine) drain(t *rapid.T) {
	ctx := m.t.Context()
	for range 400 {
		_, err := m.pool.Exec(ctx, `UPDATE calls SET next_at = clock_timestamp() - interval '1 second',
			lease_until = CASE WHEN state = 'running' THEN clock_timestamp() - interval '1 second' END WHERE conversation_id = $1`, m.name)
		if err != nil {
			t.Fatal(err)
		}
		if err := m.sweeper.Sweep(ctx); err != nil {
			t.Fatal(err)
		}
		m.take(t)(ctx)
		m.mu.Lock()
		m.hands = m.hands[max(0, len(m.hands)-1):]
		m.mu.Unlock()
		m.finish(t)(ctx)
		var unfinished int
		if err := m.pool.QueryRow(ctx, "SELECT count(*) FROM calls WHERE conversation_id = $1 AND state <> 'done'", m.name).Scan(&unfinished); err != nil {
			t.Fatal(err)
		}
		if unfinished == 0 {
			m.invariants(t)
			m.everythingTold(t)
			return
		}
	}
	t.Fatal("calls are left that nothing will ever finish")
}

func (m *machine) everythingTold(t *rapid.T) {
	ctx := m.t.Context()
	if _, err := m.pool.Exec(ctx, "UPDATE calls SET next_at = clock_timestamp() - interval '1 second' WHERE conversation_id = $1", m.name); err != nil {
		t.Fatal(err)
	}
	if err := m.sweeper.Sweep(ctx); err != nil {
		t.Fatal(err)
	}
	rows, err := m.pool.Query(ctx, "SELECT turn_id, call_id FROM calls WHERE conversation_id = $1", m.name)
	if err != nil {
		t.Fatal(err)
	}
	keys, err := pgx.CollectRows(rows, func(r pgx.CollectableRow) (call.Key, error) {
		k := call.Key{Conversation: m.name}
		return k, r.Scan(&k.Turn, &k.Call)
	})
	if err != nil {
		t.Fatal(err)
	}
	m.stream.mu.Lock()
	defer m.stream.mu.Unlock()
	for _, k := range keys {
		if m.stream.told[k] == 0 {
			t.Fatalf("the result of %s was never told", k)
		}
	}
}

func TestNoInterleavingLeavesACallThatNothingWillRelease(t *testing.T) {
	b := newBench(t, DefaultConfig())
	runs := 0
	rapid.Check(t, func(t *rapid.T) {
		runs++
		s := newStream()
		m := &machine{bench: b, name: fmt.Sprintf("machine-%d", runs), stream: s, claims: map[call.Key]Work{}}
		m.teller = NewTeller(b.Ledger, s, zerolog.Nop())
		m.sweeper = NewSweeper(b.Ledger, s, m.teller, zerolog.Nop())
		if _, err := m.PutConversation(b.t.Context(), m.name); err != nil {
			t.Fatal(err)
		}
		m.open()
		t.Repeat(map[string]func(*rapid.T){
			"one": m.one, "together": m.together, "together again": m.together, "delete": m.deleteAndRestore, "": m.invariants,
		})
		m.drain(t)
	})
}
