package dispatch_test

import (
	"errors"
	"testing"
	"time"

	"treeline/internal/call"
	"treeline/internal/dispatch"
	"treeline/internal/dispatch/dispatchtest"
	"treeline/internal/ledger"
	"treeline/internal/turn"
)

func TestTurnsThatAreOver(t *testing.T) {
	f := dispatchtest.New(t)
	f.Work(t)
	id, token := f.Turn(t, "k1", "write_file")
	done := write("c1", "a")
	if a, err := f.Dispatcher.Call(t.Context(), token, done, time.Minute); err != nil || a.Result == nil {
		t.Fatalf("%+v, %v", a, err)
	}
	_, expiring, err := f.Dispatcher.OpenTurn(t.Context(), turn.Turn{Conversation: "k1", Tools: []string{"write_file"}, Caller: turn.Caller{User: "u", Department: "d"}}, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if a, err := f.Dispatcher.Call(t.Context(), expiring, write("c1", "b"), time.Minute); err != nil || a.Result == nil || a.Result.Status != call.OK {
		t.Fatalf("%+v, %v", a, err)
	}
	codeOf := func(token string, r dispatch.Request) call.Code {
		t.Helper()
		a, err := f.Dispatcher.Call(t.Context(), token, r, time.Minute)
		if err != nil || a.Result == nil {
			t.Fatalf("%+v, %v", a, err)
		}
		return a.Result.Code
	}
	lookup := func(token string) call.Code {
		t.Helper()
		a, err := f.Dispatcher.Lookup(t.Context(), token, "c1")
		if err != nil || a.Result == nil {
			t.Fatalf("%+v, %v", a, err)
		}
		return a.Result.Code
	}
	time.Sleep(1100 * time.Millisecond)
	if got := codeOf(expiring, write("c2", "c")); got != call.TurnClosed {
		t.Errorf("an expired turn answers %q", got)
	}
	if got := lookup(expiring); got != "" {
		t.Errorf("an expired turn reads its result as %q", got)
	}
	if err := f.Dispatcher.CloseTurn(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	// The dispatcher keeps a token's facts; that it is closed it finds all the same.
	if got := codeOf(token, write("c2", "c")); got != call.TurnClosed {
		t.Errorf("a closed turn answers %q", got)
	}
	if got := codeOf(token, done); got != "" {
		t.Errorf("a closed turn answers a call that it had with %q", got)
	}
	if got := lookup(token); got != "" {
		t.Errorf("a closed turn reads its result as %q", got)
	}
	if err := f.Dispatcher.DeleteConversation(t.Context(), "k1"); err != nil {
		t.Fatal(err)
	}
	for what, got := range map[string]call.Code{"a call": codeOf(token, write("c3", "c")), "a call that it had": codeOf(token, done), "its result": lookup(token)} {
		if got != call.ConversationDeleted {
			t.Errorf("after the deletion %s is answered %q", what, got)
		}
	}
	if a, err := f.Dispatcher.Cancel(t.Context(), token, "c1"); err != nil || a.Result.Code != call.ConversationDeleted {
		t.Errorf("after the deletion cancelling gives %+v, %v", a, err)
	}
	if err := f.Dispatcher.RestoreConversation(t.Context(), "k1"); err != nil {
		t.Fatal(err)
	}
	for what, got := range map[string]call.Code{"a call": codeOf(token, write("c3", "c")), "a call that it had": codeOf(token, done), "its result": lookup(token)} {
		if got != call.TurnClosed {
			t.Errorf("after the restore %s is answered %q", what, got)
		}
	}
	if a, err := f.Dispatcher.Cancel(t.Context(), token, "c1"); err != nil || a.Result.Code != call.TurnClosed {
		t.Errorf("after the restore cancelling gives %+v, %v", a, err)
	}
	_, fresh := f.Turn(t, "k1", "write_file", "list_files")
	if got := codeOf(fresh, write("c1", "new")); got != "" {
		t.Errorf("a new turn answers %q", got)
	}
}

func TestCancelling(t *testing.T) {
	f := dispatchtest.New(t)
	id, token := f.Turn(t, "k1", "write_file", "run_code")
	results := told(t, f)
	for _, r := range []dispatch.Request{request("c1", "run_code", `{"code":"1"}`), write("c2", "a"), write("c3", "b")} {
		if _, err := f.Dispatcher.Call(t.Context(), token, r, 0); err != nil {
			t.Fatal(err)
		}
	}
	a, err := f.Dispatcher.Cancel(t.Context(), token, "c2")
	if err != nil || a.Result == nil || a.Result.Status != call.Failed || a.Result.Code != call.Cancelled || a.Seq != 2 {
		t.Errorf("a waiting call: %+v, %v", a, err)
	}
	if r := next(t, results); r.CallID != "c2" || r.Code != call.Cancelled {
		t.Errorf("told %+v", r)
	}
	again, err := f.Dispatcher.Cancel(t.Context(), token, "c2")
	if err != nil || again.Result == nil || again.Result.Code != call.Cancelled {
		t.Errorf("cancelled again: %+v, %v", again, err)
	}
	quiet(t, results)
	// The head: the next one is released, and its event published.
	f.Work(t)
	if a, err = f.Dispatcher.Cancel(t.Context(), token, "c1"); err != nil || a.Result == nil {
		t.Errorf("the head: %+v, %v", a, err)
	}
	for range 2 {
		if r := next(t, results); r.CallID == "c3" && r.Status != call.OK {
			t.Errorf("told %+v", r)
		}
	}
	if a, err = f.Dispatcher.Cancel(t.Context(), token, "c3"); err != nil || a.Result == nil || a.Result.Status != call.OK {
		t.Errorf("what is done answers with its result: %+v, %v", a, err)
	}
	if _, err = f.Dispatcher.Cancel(t.Context(), token, "c9"); !errors.Is(err, ledger.ErrNotThere) {
		t.Errorf("a call that never was: %v", err)
	}
	if got := kept(t, f, id); got["c1"] != "done cancelled" || got["c3"] != "done" {
		t.Errorf("kept %v", got)
	}
}
