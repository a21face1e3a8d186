package ledger

import (
	"context"
	"crypto/sha256"
	"errors"
	"strings"
	"testing"

	"treeline/internal/call"
)

func calculation(id, arguments string) NewCall {
	o := done("42")
	return NewCall{ID: id, Tool: "calculate", Kind: "calculation", Lane: "none", Arguments: []byte(arguments),
		Digest: sha256.Sum256([]byte(arguments)), Done: &o}
}

// A call that is done as it arrives takes only a share of the conversation's lock, so that two with one id can meet.
func TestAStepThatMeetsItsCallFromElsewhereIsTakenWholeOrNotAtAll(t *testing.T) {
	for _, c := range []struct {
		name, arguments string
		code            call.Code
	}{{"the same call", `{"expressions":["2+2"]}`, ""}, {"another call of the same id", `{"expressions":["3+3"]}`, call.CallIDReused}} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, DefaultConfig())
			other, err := b.pool.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = other.Rollback(context.Background()) }()
			if _, err := b.Ledger.accept(t.Context(), &tx{conn: other.Conn(), within: true}, b.turn, []NewCall{calculation("a", `{"expressions":["2+2"]}`)}); err != nil {
				t.Fatal(err)
			}
			type answer struct {
				accepted []Accepted
				err      error
			}
			got := make(chan answer, 1)
			go func() {
				a, err := b.Accept(context.Background(), b.turn, []NewCall{calculation("a", c.arguments), newCall("b")})
				got <- answer{a, err}
			}()
			b.waitForLockWait()
			if err := other.Commit(t.Context()); err != nil {
				t.Fatal(err)
			}
			a := <-got
			conv, err := b.Conversation(t.Context(), "k1")
			if err != nil {
				t.Fatal(err)
			}
			if c.code != "" {
				if code := codeOf(t, a.err); code != c.code || conv.Open != 0 || conv.LastSeq != 0 {
					t.Errorf("refused as %s, with %d open and last seq %d", code, conv.Open, conv.LastSeq)
				}
				return
			}
			if a.err != nil || !a.accepted[0].Duplicate || a.accepted[0].Result == nil || a.accepted[1].Seq != 1 || a.accepted[1].Event == nil || conv.Open != 1 {
				t.Errorf("accepted %+v, %v, with %d open", a.accepted, a.err, conv.Open)
			}
		})
	}
}

func TestCancellingWhatADeletionDroppedIsRefused(t *testing.T) {
	b := newBench(t, DefaultConfig())
	b.accept("c1")
	b.finish(b.claim("c1"), done(""))
	if _, err := b.Delete(t.Context(), "k1"); err != nil {
		t.Fatal(err)
	}
	if err := b.Restore(t.Context(), "k1"); err != nil {
		t.Fatal(err)
	}
	_, err := b.Cancel(t.Context(), "k1", "t1", "c1")
	if got := codeOf(t, err); got != call.ConversationDeleted {
		t.Errorf("refused as %s", got)
	}
	if _, err := b.Cancel(t.Context(), "k1", "t1", "never"); !errors.Is(err, ErrNotThere) {
		t.Errorf("a call that never was: %v", err)
	}
}

// What a stream lost is looked for at each reconnect: that must not read every call that there ever was.
func TestLostTellingsAreLookedForAmongTheLatestCallsAlone(t *testing.T) {
	b := newBench(t, DefaultConfig())
	begun, err := b.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = begun.Rollback(context.Background()) }()
	if err := b.q.WithTx(begun).AllowLongScan(t.Context(), retellWithin); err != nil {
		t.Fatal(err)
	}
	rows, err := begun.Query(t.Context(), `EXPLAIN UPDATE calls SET told_stream = NULL, told_seq = NULL
		WHERE state = 'done' AND told_seq IS NOT NULL AND (told_stream <> now() OR told_seq > 1)
		  AND finished_at > statement_timestamp() - interval '1 day' AND accepted_at > statement_timestamp() - interval '2 days'`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var plan strings.Builder
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			t.Fatal(err)
		}
		plan.WriteString(line + "\n")
	}
	if !strings.Contains(plan.String(), "calls_of_late") {
		t.Errorf("the plan is\n%s", plan.String())
	}
}

// The worker of a call that was alone when it was accepted does not look for a next one. One that came meanwhile is
// released all the same, and the outcome is kept once.
func TestACallThatIsNoLongerAloneReleasesTheNext(t *testing.T) {
	b := newBench(t, DefaultConfig())
	alone := b.accept("c1")[0]
	if alone.Event == nil || !alone.Event.Alone {
		t.Fatalf("accepted %+v: want the event of a call that is alone", alone)
	}
	w, _, err := b.Look(t.Context(), *alone.Event, false)
	if err != nil {
		t.Fatal(err)
	}
	b.accept("c2")
	f := b.finish(w, writes("a", "kept", w.Seq))
	if f.Next == nil || f.Next.Call != "c2" || f.Next.Alone {
		t.Errorf("finishing released %+v, want c2, not alone", f.Next)
	}
	conv, err := b.Conversation(t.Context(), "k1")
	if err != nil || conv.Open != 1 || conv.Bytes != 4 || conv.Files != 1 {
		t.Errorf("the conversation is %+v, %v", conv, err)
	}
}

// What is sent in one trip is kept or lost as a whole: a fence that does not hold leaves no bytes, counts or history.
func TestAnOutcomeBehindItsFenceLeavesNothing(t *testing.T) {
	b := newBench(t, DefaultConfig())
	event := b.accept("c1")[0].Event
	late, _, err := b.Look(t.Context(), *event, false)
	if err != nil {
		t.Fatal(err)
	}
	b.claim("c1") // another worker takes it
	if _, err := b.Finish(t.Context(), late, writes("a", "never", late.Seq)); !errors.Is(err, ErrFenced) {
		t.Errorf("finished: %v, want that it is fenced", err)
	}
	var rows int
	err = b.pool.QueryRow(t.Context(), `SELECT (SELECT count(*) FROM blobs) + (SELECT count(*) FROM files) + (SELECT count(*) FROM changes)`).Scan(&rows)
	conv, failed := b.Conversation(t.Context(), "k1")
	if err = errors.Join(err, failed); err != nil || rows != 0 || conv.Open != 1 || conv.Bytes != 0 || conv.Files != 0 || conv.HistoryBytes != 0 {
		t.Errorf("%d rows are left, and the conversation is %+v, %v", rows, conv, err)
	}
}

// A turn that is closed, and a conversation with too many that wait, take no call by the short way either.
func TestTheShortWayOfAcceptingTakesNothingThatTheLongOneRefuses(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Limits.WaitingCalls = 1
	b := newBench(t, cfg)
	b.accept("c1", "c2")
	if _, ok := b.acceptPlain(t.Context(), b.turn, newCall("c3"), false); ok {
		t.Error("accepted one more than may wait")
	}
	if _, ok := b.acceptPlain(t.Context(), b.turn, newCall("c2"), false); ok {
		t.Error("accepted an id twice")
	}
	other := b.newTurn("k2", "t2")
	if err := b.CloseTurn(t.Context(), "t2"); err != nil {
		t.Fatal(err)
	}
	if _, ok := b.acceptPlain(t.Context(), other, newCall("c1"), false); ok {
		t.Error("accepted in a closed turn")
	}
	gone := b.newTurn("k3", "t3")
	if _, err := b.Delete(t.Context(), "k3"); err != nil {
		t.Fatal(err)
	}
	if err := b.Restore(t.Context(), "k3"); err != nil {
		t.Fatal(err)
	}
	if _, ok := b.acceptPlain(t.Context(), gone, newCall("c1"), false); ok {
		t.Error("accepted in a turn of before a deletion")
	}
	for id, want := range map[string]int64{"k1": 2, "k2": 0, "k3": 0} {
		conv, err := b.Conversation(t.Context(), id)
		if err != nil || conv.LastSeq != want || int64(conv.Open) != want {
			t.Errorf("%s is %+v, %v; want %d places taken", id, conv, err, want)
		}
	}
}
