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
