package dispatch_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"treeline/internal/call"
	"treeline/internal/dispatch"
	"treeline/internal/dispatch/dispatchtest"
	"treeline/internal/ledger"
)

func TestAWaitThatIsUpLeavesTheCallToBeLookedUp(t *testing.T) {
	f := dispatchtest.New(t)
	_, token := f.Turn(t, "k1", "write_file")
	began := time.Now()
	a, err := f.Dispatcher.Call(t.Context(), token, write("c1", "a"), 300*time.Millisecond)
	if took := time.Since(began); err != nil || a.Result != nil || a.Seq != 1 || took < 300*time.Millisecond || took > 10*time.Second {
		t.Errorf("answered %+v, %v after %s", a, err, took)
	}
	if a, err := f.Dispatcher.Lookup(t.Context(), token, "c1"); err != nil || a.State != "released" || a.Seq != 1 || a.Result != nil {
		t.Errorf("looked up %+v, %v", a, err)
	}
	results := told(t, f)
	f.Work(t)
	next(t, results)
	if a, err := f.Dispatcher.Lookup(t.Context(), token, "c1"); err != nil || a.Result == nil || a.Result.Status != call.OK {
		t.Errorf("looked up %+v, %v", a, err)
	}
	if _, err := f.Dispatcher.Lookup(t.Context(), token, "c2"); !errors.Is(err, ledger.ErrNotThere) {
		t.Errorf("a call that never was: %v", err)
	}
	if _, err := f.Dispatcher.Lookup(t.Context(), "nobody", "c1"); !errors.Is(err, dispatch.ErrUnknownToken) {
		t.Errorf("nobody's token: %v", err)
	}
}

func TestACallerThatGoesAwayGetsNoErrorAndTheCallStands(t *testing.T) {
	f := dispatchtest.New(t)
	_, token := f.Turn(t, "k1", "write_file")
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(200*time.Millisecond, cancel)
	if a, err := f.Dispatcher.Call(ctx, token, write("c1", "a"), time.Minute); err != nil || a.Seq != 1 || a.Result != nil {
		t.Errorf("answered %+v, %v", a, err)
	}
}

// waitingCall starts a call that waits, and returns once it is accepted.
func waitingCall(t *testing.T, f *dispatchtest.Fleet, token string, r dispatch.Request) <-chan dispatch.Answer {
	t.Helper()
	answers := make(chan dispatch.Answer, 1)
	go func() {
		a, err := f.Dispatcher.Call(context.Background(), token, r, time.Minute)
		if err != nil {
			t.Errorf("waiting: %v", err)
		}
		answers <- a
	}()
	for deadline := time.Now().Add(soon); ; time.Sleep(10 * time.Millisecond) {
		if _, err := f.Dispatcher.Lookup(t.Context(), token, r.CallID); err == nil {
			return answers
		}
		if time.Now().After(deadline) {
			t.Fatal("the call was not accepted")
		}
	}
}

// finish does a call past the queue, so that nobody is told.
func finish(t *testing.T, f *dispatchtest.Fleet, k call.Key) ledger.Finished {
	t.Helper()
	w, _, err := f.Ledger.Look(t.Context(), ledger.Event{Conversation: k.Conversation, Turn: k.Turn, Call: k.Call}, false)
	if err != nil {
		t.Fatal(err)
	}
	done, err := f.Ledger.Finish(t.Context(), w, ledger.Outcome{Status: call.OK, Content: []call.Content{call.Text("done")}})
	if err != nil {
		t.Fatal(err)
	}
	return done
}

func TestAWaiterIsAnsweredThoughTheTellingWentBy(t *testing.T) {
	for _, c := range []struct {
		name  string
		fault func(f *dispatchtest.Fleet) error
	}{
		{"nobody ever tells", func(*dispatchtest.Fleet) error { return nil }},
		{"the queue restarts", func(f *dispatchtest.Fleet) error { return f.NATS.Restart() }},
		{"the queue loses its disk", func(f *dispatchtest.Fleet) error { return f.NATS.Wipe() }},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := dispatchtest.New(t)
			id, token := f.Turn(t, "k1", "write_file")
			answers := waitingCall(t, f, token, write("c1", "a"))
			finish(t, f, call.Key{Conversation: "k1", Turn: id, Call: "c1"})
			if err := c.fault(f); err != nil {
				t.Fatal(err)
			}
			if a := next(t, answers); a.Result == nil || call.TextOf(a.Result.Content) != "done" {
				t.Errorf("answered %+v", a)
			}
		})
	}
}

func TestWhatIsNoResultOfTheCallAnswersNoWaiter(t *testing.T) {
	f := dispatchtest.New(t)
	id, token := f.Turn(t, "k1", "write_file")
	answers := waitingCall(t, f, token, write("c1", "a"))
	for _, body := range []string{
		``, `{`, `null`, `[]`, `"x"`, `{}`, `{"callId":"c1","turnId":"other","conversationId":"k1","data":{},"status":"ok"}`,
		`{"callId":"c1","turnId":"` + id + `","conversationId":"k1","status":"ok"}`, // told short, before it is done
	} {
		if err := f.Conn.Publish("treeline.results.k1."+id+".c1", []byte(body)); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Conn.Flush(); err != nil {
		t.Fatal(err)
	}
	quiet(t, answers)
	f.Work(t)
	if a := next(t, answers); a.Result == nil || a.Result.Status != call.OK || len(a.Result.Content) == 0 {
		t.Errorf("answered %+v", a)
	}
}

func TestAResultThatIsToldShortIsAnsweredWhole(t *testing.T) {
	f := dispatchtest.New(t)
	id, token := f.Turn(t, "k1", "write_file")
	results := told(t, f)
	answers := waitingCall(t, f, token, write("c1", "a"))
	key := call.Key{Conversation: "k1", Turn: id, Call: "c1"}
	w, _, err := f.Ledger.Look(t.Context(), ledger.Event{Conversation: key.Conversation, Turn: key.Turn, Call: key.Call}, false)
	if err != nil {
		t.Fatal(err)
	}
	large := strings.Repeat("x", 1<<20)
	done, err := f.Ledger.Finish(t.Context(), w, ledger.Outcome{Status: call.OK, Data: large})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Queue.PublishResult(t.Context(), key, done.Told); err != nil {
		t.Fatal(err)
	}
	if r := next(t, results); r.Data != nil || r.Content != nil || r.ReplayArguments != nil || r.ResultRef != done.Result.ResultRef {
		t.Errorf("told with %d bytes of data", len(r.Data))
	}
	if a := next(t, answers); a.Result == nil || string(a.Result.Data) != `"`+large+`"` {
		t.Errorf("answered %.200v", a)
	}
}

func TestAWaiterWhoseConversationIsDeletedIsToldThePlaceThatItsCallHad(t *testing.T) {
	for _, c := range []struct {
		name   string
		before func(t *testing.T, f *dispatchtest.Fleet, k call.Key)
		status call.Status
		code   call.Code
	}{
		{"while the call waits", func(*testing.T, *dispatchtest.Fleet, call.Key) {}, call.Refused, call.ConversationDeleted},
		{"once the call is done, and nobody told", func(t *testing.T, f *dispatchtest.Fleet, k call.Key) { finish(t, f, k) }, call.OK, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := dispatchtest.New(t)
			id, token := f.Turn(t, "k1", "write_file")
			if _, err := f.Dispatcher.Call(t.Context(), token, write("c1", "a"), 0); err != nil {
				t.Fatal(err)
			}
			finish(t, f, call.Key{Conversation: "k1", Turn: id, Call: "c1"})
			answers := waitingCall(t, f, token, write("c2", "b"))
			c.before(t, f, call.Key{Conversation: "k1", Turn: id, Call: "c2"})
			// Past the dispatcher, so that nobody is told and the waiter has to look.
			if _, err := f.Ledger.Delete(t.Context(), "k1"); err != nil {
				t.Fatal(err)
			}
			a := next(t, answers)
			if a.Result == nil || a.Seq != 2 || a.Result.Seq != 2 || a.Result.ResultRef == "" || a.Result.Status != c.status || a.Result.Code != c.code ||
				a.Result.CallID != "c2" || a.Result.TurnID != id || a.Result.ConversationID != "k1" || a.Result.Tool != "write_file" {
				t.Errorf("answered %+v with %+v", a, a.Result)
			}
		})
	}
}
