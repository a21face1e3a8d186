package ledger

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"treeline/internal/call"
)

// waitFor returns once a session waits for a lock.
func (b *bench) waitForLockWait() {
	b.t.Helper()
	for range 500 {
		var n int
		err := b.pool.QueryRow(b.t.Context(), `SELECT count(*) FROM pg_stat_activity
			WHERE datname = current_database() AND wait_event_type = 'Lock'`).Scan(&n)
		if err != nil {
			b.t.Fatal(err)
		}
		if n > 0 {
			return
		}
		time.Sleep(2 * time.Millisecond)
	}
	b.t.Fatal("nothing waits for a lock")
}

// holding runs fn inside a transaction that has the conversation's lock, and commits it while others wait.
func (b *bench) holding(fn func(t *tx)) (commit func()) {
	b.t.Helper()
	begun, err := b.pool.Begin(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	if _, err := lock(b.t.Context(), b.q.WithTx(begun), b.turn.Conversation); err != nil {
		b.t.Fatal(err)
	}
	fn(&tx{conn: begun.Conn(), within: true})
	return func() {
		if err := begun.Commit(b.t.Context()); err != nil {
			b.t.Fatal(err)
		}
	}
}

// An accept that waited for a finish must see what the finish did: the conversation has no head any more. One that decided
// in its locking statement, on a snapshot from before the wait, would queue the call behind a head that is gone.
func TestAcceptDecidesOnWhatIsTrueAfterTheLock(t *testing.T) {
	for name, ids := range map[string][]string{"one call": {"c2"}, "a step": {"c2", "c3"}} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, DefaultConfig())
			b.accept("c1")
			w := b.claim("c1")
			commit := b.holding(func(inner *tx) {
				if _, err := b.commitOutcome(t.Context(), inner, w, done(""), false); err != nil {
					t.Fatal(err)
				}
			})
			var calls []NewCall
			for _, id := range ids {
				calls = append(calls, newCall(id))
			}
			got := make(chan Accepted, 1)
			go func() {
				a, err := b.Accept(context.Background(), b.turn, calls)
				if err != nil {
					t.Errorf("accept: %v", err)
					a = make([]Accepted, 1)
				}
				got <- a[0]
			}()
			b.waitForLockWait()
			commit()
			if a := <-got; a.Event == nil {
				t.Errorf("the call was accepted without being released: nothing will ever release it")
			}
			if _, s := b.look("c2"); s != Released {
				t.Errorf("c2 is %s", s)
			}
		})
	}
}

// A finish that waited for an accept must release the call that it brought.
func TestFinishDecidesOnWhatIsTrueAfterTheLock(t *testing.T) {
	b := newBench(t, DefaultConfig())
	b.accept("c1")
	w := b.claim("c1")
	commit := b.holding(func(inner *tx) {
		if _, err := b.Ledger.accept(t.Context(), inner, b.turn, []NewCall{newCall("c2")}); err != nil {
			t.Fatal(err)
		}
	})
	got := make(chan Finished, 1)
	go func() {
		f, err := b.Finish(context.Background(), w, done(""))
		if err != nil {
			t.Errorf("finish: %v", err)
		}
		got <- f
	}()
	b.waitForLockWait()
	commit()
	if f := <-got; f.Next == nil || f.Next.Call != "c2" {
		t.Errorf("finishing released %v, want c2: nothing will ever release it", f.Next)
	}
}

func TestCallsThatTouchNoWorkspaceNeverWait(t *testing.T) {
	b := newBench(t, DefaultConfig())
	b.accept("c1")
	b.claim("c1")
	commit := b.holding(func(*tx) {}) // a finish in progress
	defer commit()
	c := newCall("calc")
	o := done("42")
	c.Lane, c.Done = "none", &o
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	got, err := b.Accept(ctx, b.turn, []NewCall{c})
	if err != nil || got[0].Seq != 0 || got[0].Result == nil || got[0].Told == nil {
		t.Fatalf("answered with %+v, %v", got, err)
	}
	var told call.Result
	if err := json.Unmarshal(got[0].Told, &told); err != nil || told.Content[0].Text != "42" {
		t.Errorf("told as %s", got[0].Told)
	}
}

func TestConcurrentSessionsLeaveNoCallBehind(t *testing.T) {
	b := newBench(t, DefaultConfig())
	const clients, each = 8, 12
	var wg sync.WaitGroup
	for i := range clients {
		wg.Go(func() {
			for j := range each {
				for {
					_, err := b.Accept(context.Background(), b.turn, []NewCall{newCall(fmt.Sprintf("c-%d-%d", i, j))})
					if err == nil {
						break
					}
					time.Sleep(time.Millisecond)
				}
			}
		})
	}
	stop := make(chan struct{})
	var workers sync.WaitGroup
	for range 3 {
		workers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				heads, err := b.q.Heads(context.Background(), "k1")
				if err != nil || len(heads) == 0 {
					continue
				}
				w, s, err := b.Look(context.Background(), Event{Conversation: "k1", Turn: heads[0].TurnID, Call: heads[0].CallID}, false)
				if err != nil || s != Released {
					continue
				}
				if _, err := b.Finish(context.Background(), w, done("")); err != nil && !errors.Is(err, ErrFenced) {
					t.Errorf("finish: %v", err)
				}
			}
		})
	}
	wg.Wait()
	deadline := time.Now().Add(20 * time.Second)
	for {
		c, err := b.Conversation(t.Context(), "k1")
		if err != nil {
			t.Fatal(err)
		}
		if c.Open == 0 {
			if c.LastSeq != clients*each {
				t.Errorf("last seq %d, want %d", c.LastSeq, clients*each)
			}
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d calls are open and nothing finishes them", c.Open)
		}
		time.Sleep(5 * time.Millisecond)
	}
	close(stop)
	workers.Wait()
	var order bool
	err := b.pool.QueryRow(t.Context(), `SELECT bool_and(ok) FROM (
		SELECT finished_at >= lag(finished_at, 1, '-infinity') OVER (ORDER BY seq) AS ok FROM calls) s`).Scan(&order)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		t.Fatal(err)
	}
	if !order {
		t.Error("calls did not finish in the order of their seq")
	}
}
