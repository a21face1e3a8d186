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
	"treeline/internal/ledger"
	"treeline/internal/store/db"
	"treeline/internal/turn"
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

func TestOddToolNamesAreKeptClean(t *testing.T) {
	f := dispatchtest.New(t)
	id, token := f.Turn(t, "k1", "write_file")
	for i, c := range []struct{ name, want string }{
		{"no_such_tool", "no_such_tool"}, {"", ""}, {"a\x00b\nc\x7f", "a?b?c?"}, {"\xff\xfe", "??"}, {"größe", "größe"},
		{strings.Repeat("é", 100), strings.Repeat("é", 64)}, {"portal_put", "portal_put"}, {"write_file ", "write_file "},
	} {
		callID := fmt.Sprintf("c%d", i)
		a, err := f.Dispatcher.Call(t.Context(), token, request(callID, c.name, `{}`), 0)
		if err != nil || a.Result == nil || a.Result.Code != call.ToolNotOffered || a.Result.Tool != c.want {
			t.Errorf("%q: %+v, %v", c.name, a, err)
			continue
		}
		row, err := f.Ledger.Queries().Call(t.Context(), db.CallParams{TurnID: id, CallID: callID})
		if err != nil || row.Tool != c.want || row.Kind != "unknown" || row.Lane != "none" {
			t.Errorf("%q is kept as %q of kind %q, %v", c.name, row.Tool, row.Kind, err)
		}
	}
}

func TestHostileArgumentsAreRefusedAndNeverAFailure(t *testing.T) {
	f := dispatchtest.New(t)
	_, token := f.Turn(t, "k1", "write_file", "read_file", "run_code", "calculate")
	for i, arguments := range []string{
		``, `null`, `[]`, `"x"`, `{"path":"\u0000"}`, "{\"path\":\"\xff\"}", `{"path":"a\u0000b","content":"x"}`, `{"path":"a","content":"\ud800"}`,
		`{"files":[{"path":"\u0000","content":""}]}`, `{"path":"a","path":"b","content":""}`, strings.Repeat("[", 100_000), `{"a":` + strings.Repeat("1", 100_000) + `}`,
		`{"path":1e999999}`, "\x00", `{"` + strings.Repeat("k", 300_000) + `":1}`,
	} {
		for _, tool := range []string{"write_file", "read_file", "run_code", "calculate"} {
			id := fmt.Sprintf("%s-%d", tool, i)
			a, err := f.Dispatcher.Call(t.Context(), token, request(id, tool, arguments), 0)
			if err != nil {
				t.Errorf("%s %.40q: %v", tool, arguments, err)
				continue
			}
			if a.Result != nil && a.Result.Status != call.Refused {
				t.Errorf("%s %.40q: %+v", tool, arguments, a.Result)
			}
		}
	}
}

func TestATurnIsWatched(t *testing.T) {
	f := dispatchtest.New(t)
	f.Work(t)
	id, token := f.Turn(t, "k1", "write_file")
	_, other := f.Turn(t, "k1", "write_file")
	ctx, cancel := context.WithCancel(t.Context())
	notices, err := f.Dispatcher.Watch(ctx, token)
	if err != nil {
		t.Fatal(err)
	}
	for _, who := range []string{other, token} {
		if _, err := f.Dispatcher.Call(t.Context(), who, write("c1", "a"+who[:8]), time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	n := next(t, notices)
	var r call.Result
	if err := json.Unmarshal(n.Data, &r); err != nil || n.Kind != "result" || n.Call != "c1" || r.TurnID != id {
		t.Errorf("noticed %s of %s: %+v, %v", n.Kind, n.Call, r, err)
	}
	if err := f.Queue.PublishProgress(call.Key{Conversation: "k1", Turn: id, Call: "c2"}, []byte(`{"half":1}`)); err != nil {
		t.Fatal(err)
	}
	if n := next(t, notices); n.Kind != "progress" || n.Call != "c2" || string(n.Data) != `{"half":1}` {
		t.Errorf("noticed %+v", n)
	}
	cancel()
	select {
	case _, open := <-notices:
		if open {
			t.Error("noticed more")
		}
	case <-time.After(soon):
		t.Error("watching does not end")
	}
	if _, err := f.Dispatcher.Watch(t.Context(), "nobody"); !errors.Is(err, dispatch.ErrUnknownToken) {
		t.Errorf("nobody's token: %v", err)
	}
}

func TestAWatcherThatFallsFarBehindIsCutOff(t *testing.T) {
	f := dispatchtest.New(t)
	id, token := f.Turn(t, "k1", "write_file")
	notices, err := f.Dispatcher.Watch(t.Context(), token)
	if err != nil {
		t.Fatal(err)
	}
	for range 1500 {
		if err := f.Queue.PublishProgress(call.Key{Conversation: "k1", Turn: id, Call: "c1"}, []byte(`{}`)); err != nil {
			t.Fatal(err)
		}
	}
	deadline := time.After(soon)
	for n := 0; ; n++ {
		select {
		case _, open := <-notices:
			if !open {
				return
			}
		case <-deadline:
			t.Fatalf("%d notices came and no end", n)
		}
		time.Sleep(time.Millisecond)
	}
}

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
