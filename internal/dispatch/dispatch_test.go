package dispatch_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"treeline/internal/call"
	"treeline/internal/devenv/devtest"
	"treeline/internal/dispatch"
	"treeline/internal/dispatch/dispatchtest"
)

func TestMain(m *testing.M) { devtest.Main(m) }

const soon = 30 * time.Second

func request(id, tool, arguments string) dispatch.Request {
	return dispatch.Request{CallID: id, Tool: tool, Arguments: json.RawMessage(arguments)}
}

func write(id, path string) dispatch.Request {
	return request(id, "write_file", fmt.Sprintf(`{"path":%q,"content":"x"}`, path))
}

func refusalOf(t *testing.T, err error) *call.Refusal {
	t.Helper()
	var r *call.Refusal
	if !errors.As(err, &r) {
		t.Fatalf("want a refusal, got %v", err)
	}
	return r
}

// kept gives the codes of a turn's calls, as the ledger keeps them.
func kept(t *testing.T, f *dispatchtest.Fleet, turnID string) map[string]string {
	t.Helper()
	rows, err := f.Pool.Query(t.Context(), `SELECT call_id, state || ' ' || code FROM calls WHERE turn_id = $1`, turnID)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	got := map[string]string{}
	for rows.Next() {
		var id, state string
		if err := rows.Scan(&id, &state); err != nil {
			t.Fatal(err)
		}
		got[id] = strings.TrimSpace(state)
	}
	return got
}

func told(t *testing.T, f *dispatchtest.Fleet) <-chan call.Result {
	t.Helper()
	got := make(chan call.Result, 1000)
	sub, err := f.Conn.Subscribe("treeline.results.>", func(m *nats.Msg) {
		var r call.Result
		if err := json.Unmarshal(m.Data, &r); err != nil {
			return
		}
		got <- r
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sub.Unsubscribe() })
	if err := f.Conn.Flush(); err != nil {
		t.Fatal(err)
	}
	return got
}

func next[T any](t *testing.T, c <-chan T) T {
	t.Helper()
	select {
	case v, open := <-c:
		if !open {
			t.Fatal("the channel is closed")
		}
		return v
	case <-time.After(soon):
		t.Fatal("nothing came")
		panic("unreachable")
	}
}

func quiet[T any](t *testing.T, c <-chan T) {
	t.Helper()
	select {
	case v := <-c:
		t.Fatalf("%+v came", v)
	case <-time.After(150 * time.Millisecond):
	}
}

func TestAStepIsTakenWhole(t *testing.T) {
	f := dispatchtest.New(t)
	id, token := f.Turn(t, "k1", "write_file", "calculate")
	answers, err := f.Dispatcher.Submit(t.Context(), token, []dispatch.Request{write("c1", "a"), request("c2", "calculate", `{"expressions":["2+2"]}`), write("c3", "b")})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []struct {
		seq   int64
		state string
	}{{1, "released"}, {0, "done"}, {2, "queued"}} {
		if answers[i].Seq != want.seq || answers[i].State != want.state {
			t.Errorf("call %d: %+v, want %+v", i+1, answers[i], want)
		}
	}
	if got := kept(t, f, id); len(got) != 3 {
		t.Errorf("kept %v", got)
	}
}

func TestAStepWithOneRefusalIsRefusedWholeAndNamesItsCall(t *testing.T) {
	f := dispatchtest.New(t)
	id, token := f.Turn(t, "k1", "write_file", "read_file")
	if _, err := f.Dispatcher.Submit(t.Context(), token, []dispatch.Request{write("old", "a")}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		step  []dispatch.Request
		code  call.Code
		names string
	}{
		{"a tool that is not offered", []dispatch.Request{write("c1", "a"), request("c2", "delete_file", `{"path":"a"}`)}, call.ToolNotOffered, "c2"},
		{"a tool that is none", []dispatch.Request{request("c1", "nothing", `{}`), write("c2", "a")}, call.ToolNotOffered, "c1"},
		{"bad arguments", []dispatch.Request{write("c1", "a"), write("c2", "b"), request("c3", "read_file", `{"path":1}`)}, call.InvalidArguments, "c3"},
		{"a bad path", []dispatch.Request{write("c1", "a"), write("c2", "../b")}, call.PathInvalid, "c2"},
		{"an id twice", []dispatch.Request{write("c1", "a"), write("c1", "b")}, call.CallIDReused, "c1"},
		{"an id used before", []dispatch.Request{write("c1", "a"), write("old", "b")}, call.CallIDReused, "old"},
		{"a call that is too large", []dispatch.Request{write("c1", "a"), request("c2", "write_file", `{"path":"b","content":"`+strings.Repeat("x", 1<<20)+`"}`)}, call.TooLarge, "c2"},
		{"no call at all", nil, call.InvalidArguments, ""},
		{"an id that is none", []dispatch.Request{write("c1", "a"), write("c 2", "b")}, call.InvalidArguments, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := f.Dispatcher.Submit(t.Context(), token, c.step)
			if r := refusalOf(t, err); r.Code != c.code || r.CallID != c.names || r.Text == "" {
				t.Errorf("refused %+v, want %s of %q", r, c.code, c.names)
			}
			if got := kept(t, f, id); len(got) != 1 || got["old"] != "released" {
				t.Errorf("kept %v", got)
			}
		})
	}
	conv, err := f.Ledger.Conversation(t.Context(), "k1")
	if err != nil || conv.LastSeq != 1 || conv.Open != 1 {
		t.Errorf("last seq %d, %d open, %v: the refused steps took places", conv.LastSeq, conv.Open, err)
	}
}

func TestASingleRefusedCallIsKeptAndToldAndAnswersAgain(t *testing.T) {
	f := dispatchtest.New(t)
	id, token := f.Turn(t, "k1", "write_file")
	results := told(t, f)
	bad := write("c1", "../a")
	_, err := f.Dispatcher.Submit(t.Context(), token, []dispatch.Request{bad})
	first := refusalOf(t, err)
	if first.Code != call.PathInvalid || first.CallID != "c1" {
		t.Errorf("refused %+v", first)
	}
	if r := next(t, results); r.CallID != "c1" || r.Code != call.PathInvalid || r.Seq != 0 || r.Status != call.Refused || !r.IsError || r.ResultRef == "" {
		t.Errorf("told %+v", r)
	}
	if got := kept(t, f, id); got["c1"] != "done path_invalid" {
		t.Errorf("kept %v", got)
	}
	_, err = f.Dispatcher.Submit(t.Context(), token, []dispatch.Request{bad})
	if again := refusalOf(t, err); *again != *first {
		t.Errorf("again %+v, want %+v", again, first)
	}
	a, err := f.Dispatcher.Call(t.Context(), token, bad, time.Second)
	if err != nil || !a.Duplicate || a.Result == nil || a.Result.Code != call.PathInvalid {
		t.Errorf("called again: %+v, %v", a, err)
	}
	a, err = f.Dispatcher.Call(t.Context(), token, write("c1", "a"), time.Second)
	if err != nil || a.Result == nil || a.Result.Code != call.CallIDReused {
		t.Errorf("called with other arguments: %+v, %v", a, err)
	}
}

func TestAnswersOfTheMomentAreNotKept(t *testing.T) {
	f := dispatchtest.New(t)
	id, token := f.Turn(t, "k1", "write_file")
	call1 := func(r dispatch.Request) *call.Result {
		a, err := f.Dispatcher.Call(t.Context(), token, r, 0)
		if err != nil {
			t.Fatal(err)
		}
		return a.Result
	}
	if r := call1(request("big", "write_file", `{"path":"a","content":"`+strings.Repeat("x", 1<<20)+`"}`)); r == nil || r.Code != call.TooLarge || !strings.Contains(call.TextOf(r.Content), "run_code") {
		t.Errorf("too large: %+v", r)
	}
	for i := range 65 {
		if r := call1(write(fmt.Sprintf("c%d", i), "a")); r != nil {
			t.Fatalf("call %d: %+v", i, r)
		}
	}
	if r := call1(write("busy", "a")); r == nil || r.Code != call.Busy || !strings.Contains(call.TextOf(r.Content), "64") {
		t.Errorf("the 66th: %+v", r)
	}
	if a, err := f.Dispatcher.Cancel(t.Context(), token, "c64"); err != nil || a.Result.Code != call.Cancelled {
		t.Fatalf("%+v, %v", a, err)
	}
	if r := call1(write("busy", "a")); r != nil {
		t.Errorf("sent again, when there is room: %+v", r)
	}
	if err := f.Dispatcher.CloseTurn(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if r := call1(write("late", "a")); r == nil || r.Code != call.TurnClosed {
		t.Errorf("in a closed turn: %+v", r)
	}
	if err := f.Dispatcher.DeleteConversation(t.Context(), "k1"); err != nil {
		t.Fatal(err)
	}
	if r := call1(write("later", "a")); r == nil || r.Code != call.ConversationDeleted {
		t.Errorf("in a deleted conversation: %+v", r)
	}
	got := kept(t, f, id)
	for _, gone := range []string{"big", "late", "later"} {
		if got[gone] != "" {
			t.Errorf("%s is kept as %s", gone, got[gone])
		}
	}
	if got["busy"] != "done conversation_deleted" {
		t.Errorf("the call that was sent again is kept as %q", got["busy"])
	}
}

func TestADuplicateIsAnsweredWithWhatBecameOfTheFirst(t *testing.T) {
	f := dispatchtest.New(t)
	_, token := f.Turn(t, "k1", "write_file")
	for _, r := range []dispatch.Request{write("c1", "a"), write("c2", "b")} {
		a, err := f.Dispatcher.Call(t.Context(), token, r, 0)
		if err != nil || a.Duplicate || a.Result != nil {
			t.Fatalf("%+v, %v", a, err)
		}
	}
	for id, want := range map[string]dispatch.Answer{
		"c1": {CallID: "c1", Seq: 1, State: "released", Duplicate: true}, "c2": {CallID: "c2", Seq: 2, State: "queued", Duplicate: true},
	} {
		a, err := f.Dispatcher.Call(t.Context(), token, write(id, map[string]string{"c1": "a", "c2": "b"}[id]), 0)
		if err != nil || a != want {
			t.Errorf("%s sent again: %+v, %v; want %+v", id, a, err, want)
		}
	}
	waiting := make(chan dispatch.Answer, 2)
	for range 2 {
		go func() {
			a, err := f.Dispatcher.Call(context.Background(), token, write("c2", "b"), time.Minute)
			if err != nil {
				t.Errorf("waiting: %v", err)
			}
			waiting <- a
		}()
	}
	time.Sleep(100 * time.Millisecond)
	f.Work(t)
	for range 2 {
		if a := next(t, waiting); a.Result == nil || a.Result.Status != call.OK || a.Result.Seq != 2 {
			t.Errorf("a waiter was answered %+v", a)
		}
	}
	a, err := f.Dispatcher.Call(t.Context(), token, write("c2", "b"), time.Minute)
	if err != nil || !a.Duplicate || a.Result == nil || a.Result.Seq != 2 {
		t.Errorf("done, sent again: %+v, %v", a, err)
	}
	// The same arguments in another spelling are the same.
	a, err = f.Dispatcher.Call(t.Context(), token, request("c2", "write_file", ` { "content" : "\u0078", "path":"b" } `), time.Minute)
	if err != nil || !a.Duplicate || a.Result == nil || a.Result.Code != "" {
		t.Errorf("in another spelling: %+v, %v", a, err)
	}
}
