package natsapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"treeline/internal/catalogue"
	"treeline/internal/devenv/devtest"
	"treeline/internal/dispatch"
	"treeline/internal/dispatch/dispatchtest"
	"treeline/internal/dispatch/natsapi"
	"treeline/schemas"
)

func TestMain(m *testing.M) { devtest.Main(m) }

// run answers requests over the fleet until stop is called, which gives what Run returned.
func run(t *testing.T, conn *nats.Conn, d natsapi.Dispatcher, change func(*natsapi.Config)) (stop func() error) {
	t.Helper()
	cfg := natsapi.DefaultConfig()
	cfg.Grace = 2 * time.Second
	if change != nil {
		change(&cfg)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	before := conn.NumSubscriptions()
	go func() { ended <- natsapi.New(conn, d, cfg, zerolog.Nop()).Run(ctx) }()
	for deadline := time.Now().Add(5 * time.Second); conn.NumSubscriptions() < before+2; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("no subscriptions came")
		}
	}
	if err := conn.Flush(); err != nil {
		t.Fatal(err)
	}
	var err error
	stopped := false
	stop = func() error {
		if !stopped {
			cancel()
			err, stopped = <-ended, true
		}
		return err
	}
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
	return stop
}

// ask sends a request and gives its answer, which must be as one of the message schemas says.
func ask(t *testing.T, conn *nats.Conn, subject, body string, schemas ...string) map[string]any {
	t.Helper()
	m, err := conn.Request(subject, []byte(body), 20*time.Second)
	if err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(string(m.Data)))
	if err != nil {
		t.Fatalf("the answer %s is no JSON: %v", m.Data, err)
	}
	var why error
	for _, name := range schemas {
		if why = compiled(t, name).Validate(v); why == nil {
			return v.(map[string]any)
		}
	}
	t.Fatalf("the answer %s is none of %v: %v", m.Data, schemas, why)
	return nil
}

func compiled(t *testing.T, name string) *jsonschema.Schema {
	t.Helper()
	raw, err := schemas.Files.ReadFile("messages/" + name + ".json")
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(string(raw)))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource(name, doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile(name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func wantSeqs(t *testing.T, answer map[string]any, want ...int64) {
	t.Helper()
	var got []int64
	for _, v := range answer["seq"].([]any) {
		n, err := v.(json.Number).Int64()
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, n)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("seq %v, want %v", got, want)
	}
}

func TestCallsAndStepsAreAcceptedAndTheirResultsGiven(t *testing.T) {
	f := dispatchtest.New(t)
	run(t, f.Conn, f.Dispatcher, nil)
	_, token := f.Turn(t, "k1", "write_file", "read_file", "calculate")
	call := fmt.Sprintf(`{"token":%q,"callId":"c1","tool":"write_file","arguments":{"path":"a","content":"1"}}`, token)
	wantSeqs(t, ask(t, f.Conn, natsapi.CallSubject, call, "accepted"), 1)
	wantSeqs(t, ask(t, f.Conn, natsapi.CallSubject, call, "accepted"), 1) // again is the same call
	step := fmt.Sprintf(`{"token":%q,"calls":[{"callId":"c2","tool":"read_file","arguments":{"path":"a"}},
		{"callId":"c3","tool":"calculate","arguments":{"expressions":["2+2"]}},{"callId":"c4","tool":"read_file","arguments":{"path":"a"}}]}`, token)
	wantSeqs(t, ask(t, f.Conn, natsapi.CallSubject, step, "accepted"), 2, 0, 3)

	request := func(id string) string { return fmt.Sprintf(`{"token":%q,"callId":%q}`, token, id) }
	if got := ask(t, f.Conn, natsapi.ResultSubject, request("c4"), "waiting"); got["callId"] != "c4" || got["state"] != "queued" {
		t.Errorf("waiting %v", got)
	}
	if got := ask(t, f.Conn, natsapi.ResultSubject, request("c3"), "result"); got["status"] != "ok" || got["callId"] != "c3" {
		t.Errorf("result %v", got)
	}
	f.Work(t)
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if got := ask(t, f.Conn, natsapi.ResultSubject, request("c4"), "waiting", "result"); got["status"] == "ok" {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the last call of the step was not done")
		}
	}
}

func TestWhatCannotBeTakenIsRefused(t *testing.T) {
	f := dispatchtest.New(t)
	run(t, f.Conn, f.Dispatcher, nil)
	_, token := f.Turn(t, "k1", "write_file", "read_file")
	f.Turn(t, "gone")
	_, gone := f.Turn(t, "gone", "read_file")
	if err := f.Dispatcher.DeleteConversation(t.Context(), "gone"); err != nil {
		t.Fatal(err)
	}
	read := func(token, id string) string {
		return fmt.Sprintf(`{"token":%q,"callId":%q,"tool":"read_file","arguments":{"path":"a"}}`, token, id)
	}
	for _, c := range []struct{ name, subject, body, code, callID string }{
		{"nothing", natsapi.CallSubject, ``, "invalid_arguments", ""},
		{"no JSON", natsapi.CallSubject, `{"token":`, "invalid_arguments", ""},
		{"no object", natsapi.CallSubject, `[]`, "invalid_arguments", ""},
		{"null", natsapi.CallSubject, `null`, "invalid_arguments", ""},
		{"no UTF-8", natsapi.CallSubject, "\xff\xfe", "invalid_arguments", ""},
		{"deep nesting", natsapi.CallSubject, strings.Repeat("[", 100000), "invalid_arguments", ""},
		{"deep nesting in arguments", natsapi.CallSubject, `{"token":"x","callId":"c","tool":"t","arguments":` + strings.Repeat("[", 100000), "invalid_arguments", ""},
		{"no token", natsapi.CallSubject, `{"callId":"c1","tool":"read_file","arguments":{}}`, "invalid_arguments", ""},
		{"a token that is no string", natsapi.CallSubject, `{"token":1,"callId":"c1","tool":"read_file","arguments":{}}`, "invalid_arguments", ""},
		{"a token that is null", natsapi.CallSubject, `{"token":null,"callId":"c1","tool":"read_file","arguments":{}}`, "invalid_arguments", ""},
		{"no arguments", natsapi.CallSubject, fmt.Sprintf(`{"token":%q,"callId":"c1","tool":"read_file"}`, token), "invalid_arguments", "c1"},
		{"no tool", natsapi.CallSubject, fmt.Sprintf(`{"token":%q,"callId":"c1","arguments":{}}`, token), "invalid_arguments", "c1"},
		{"an unknown field", natsapi.CallSubject, `{"token":"x","callId":"c1","tool":"t","arguments":{},"more":1}`, "invalid_arguments", ""},
		{"a field in other letters", natsapi.CallSubject, `{"Token":"x","callId":"c1","tool":"t","arguments":{}}`, "invalid_arguments", ""},
		{"a field twice", natsapi.CallSubject, `{"token":"x","token":"y","callId":"c1","tool":"t","arguments":{}}`, "invalid_arguments", ""},
		{"something behind", natsapi.CallSubject, read(token, "c1") + "x", "invalid_arguments", ""},
		{"one call and several", natsapi.CallSubject, `{"token":"x","callId":"c1","calls":[]}`, "invalid_arguments", ""},
		{"no calls", natsapi.CallSubject, `{"token":"x","calls":[]}`, "invalid_arguments", ""},
		{"calls that are no list", natsapi.CallSubject, `{"token":"x","calls":{}}`, "invalid_arguments", ""},
		{"calls that are null", natsapi.CallSubject, `{"token":"x","calls":null}`, "invalid_arguments", ""},
		{"a call that is none", natsapi.CallSubject, `{"token":"x","calls":[1]}`, "invalid_arguments", ""},
		{"a call with a field of the message", natsapi.CallSubject, `{"token":"x","calls":[{"token":"x","callId":"c1","tool":"t","arguments":{}}]}`, "invalid_arguments", ""},
		{"too many calls", natsapi.CallSubject, `{"token":"x","calls":[` + strings.Repeat(`{},`, 256) + `{}]}`, "invalid_arguments", ""},
		{"nobody's token", natsapi.CallSubject, read("nobody", "c1"), "turn_unknown", "c1"},
		{"an odd call id", natsapi.CallSubject, read(token, "a b"), "invalid_arguments", ""},
		{"an empty call id", natsapi.CallSubject, read(token, ""), "invalid_arguments", ""},
		{"a tool that is not offered", natsapi.CallSubject, fmt.Sprintf(`{"token":%q,"callId":"c2","tool":"run_code","arguments":{}}`, token), "tool_not_offered", "c2"},
		{"U+0000 in a tool's name", natsapi.CallSubject, fmt.Sprintf(`{"token":%q,"callId":"c3","tool":"\u0000\ud800","arguments":{}}`, token), "tool_not_offered", "c3"},
		{"a bad path", natsapi.CallSubject, fmt.Sprintf(`{"token":%q,"callId":"c4","tool":"read_file","arguments":{"path":"../a"}}`, token), "path_invalid", "c4"},
		{"one bad call of several", natsapi.CallSubject, fmt.Sprintf(`{"token":%q,"calls":[{"callId":"s1","tool":"read_file","arguments":{"path":"a"}},
			{"callId":"s2","tool":"read_file","arguments":{"path":"../a"}}]}`, token), "path_invalid", "s2"},
		{"a call id twice in a step", natsapi.CallSubject, fmt.Sprintf(`{"token":%q,"calls":[{"callId":"s1","tool":"read_file","arguments":{"path":"a"}},
			{"callId":"s1","tool":"read_file","arguments":{"path":"a"}}]}`, token), "call_id_reused", "s1"},
		{"a deleted conversation", natsapi.CallSubject, read(gone, "c1"), "conversation_deleted", "c1"},
		{"a message over 1 MiB", natsapi.CallSubject, fmt.Sprintf(`{"token":%q,"callId":"c5","tool":"write_file","arguments":{"path":"a","content":%q}}`, token, strings.Repeat("x", 1<<20)), "too_large", "c5"},
		{"a message over 1 MiB of nobody", natsapi.CallSubject, fmt.Sprintf(`{"token":"nobody","callId":"c5","tool":"write_file","arguments":{"path":"a","content":%q}}`, strings.Repeat("x", 1<<20)), "turn_unknown", "c5"},
		{"over 1 MiB of nothing", natsapi.CallSubject, strings.Repeat("x", 1<<20+1), "turn_unknown", ""},
		{"no result request", natsapi.ResultSubject, `{}`, "invalid_arguments", ""},
		{"an odd call id for a result", natsapi.ResultSubject, `{"token":"x","callId":"\u0000"}`, "invalid_arguments", ""},
		{"nobody's token for a result", natsapi.ResultSubject, `{"token":"nobody","callId":"c1"}`, "turn_unknown", "c1"},
		{"a call that never was", natsapi.ResultSubject, fmt.Sprintf(`{"token":%q,"callId":"c9"}`, token), "input_not_found", "c9"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := ask(t, f.Conn, c.subject, c.body, "refusal")
			id, _ := got["callId"].(string)
			if got["code"] != c.code || id != c.callID {
				t.Errorf("refused as %v for %q, want %s for %q: %v", got["code"], id, c.code, c.callID, got["content"])
			}
		})
	}
	// The step with the bad call stored nothing: its good call is new.
	if got := ask(t, f.Conn, natsapi.ResultSubject, fmt.Sprintf(`{"token":%q,"callId":"s1"}`, token), "refusal"); got["code"] != "input_not_found" {
		t.Errorf("the refused step left %v", got)
	}
}

// gate is a dispatcher that answers when it is told to.
type gate struct {
	open    chan struct{}
	entered atomic.Int32
	panics  bool
}

func (g *gate) Submit(ctx context.Context, _ string, r []dispatch.Request) ([]dispatch.Answer, error) {
	if g.panics {
		panic("at the door")
	}
	g.entered.Add(1)
	select {
	case <-g.open:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return []dispatch.Answer{{CallID: r[0].CallID, Seq: 1}}, nil
}

func (g *gate) Lookup(context.Context, string, string) (dispatch.Answer, error) {
	return dispatch.Answer{}, dispatch.ErrUnknownToken
}

func (g *gate) Tools(context.Context, string) ([]catalogue.Tool, error) { return nil, nil }

func (g *gate) wait(t *testing.T, n int32) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Second); g.entered.Load() < n; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d requests are at hand, want %d", g.entered.Load(), n)
		}
	}
}

func connect(t *testing.T) *nats.Conn {
	t.Helper()
	conn, err := nats.Connect(devtest.NATS(t).URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	return conn
}

const any1 = `{"token":"x","callId":"c1","tool":"t","arguments":{}}`

func TestMoreAtOnceThanThereIsRoomForIsBusy(t *testing.T) {
	conn, g := connect(t), &gate{open: make(chan struct{})}
	run(t, conn, g, func(c *natsapi.Config) { c.AtOnce = 2 })
	inbox := conn.NewInbox()
	answers, err := conn.SubscribeSync(inbox)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := conn.PublishRequest(natsapi.CallSubject, inbox, []byte(any1)); err != nil {
			t.Fatal(err)
		}
	}
	g.wait(t, 2)
	if got := ask(t, conn, natsapi.CallSubject, any1, "refusal"); got["code"] != "busy" {
		t.Errorf("the third was refused as %v", got)
	}
	close(g.open)
	for range 2 {
		if _, err := answers.NextMsg(5 * time.Second); err != nil {
			t.Fatal(err)
		}
	}
	wantSeqs(t, ask(t, conn, natsapi.CallSubject, any1, "accepted"), 1)
}

func TestStoppingAnswersWhatIsAtHand(t *testing.T) {
	conn, g := connect(t), &gate{open: make(chan struct{})}
	stop := run(t, conn, g, nil)
	answered := make(chan error, 1)
	go func() {
		m, err := conn.Request(natsapi.CallSubject, []byte(any1), 10*time.Second)
		if err == nil && !strings.Contains(string(m.Data), `"accepted":true`) {
			err = fmt.Errorf("answered %s", m.Data)
		}
		answered <- err
	}()
	g.wait(t, 1)
	time.AfterFunc(200*time.Millisecond, func() { close(g.open) })
	if err := stop(); err != nil {
		t.Error(err)
	}
	if err := <-answered; err != nil {
		t.Error(err)
	}
	if _, err := conn.Request(natsapi.CallSubject, []byte(any1), time.Second); err != nats.ErrNoResponders {
		t.Errorf("after the stop: %v", err)
	}
}

func TestWorkThatDoesNotEndIsGivenUpOn(t *testing.T) {
	conn, g := connect(t), &gate{open: make(chan struct{})}
	run(t, conn, g, func(c *natsapi.Config) { c.Timeout = 50 * time.Millisecond })
	if got := ask(t, conn, natsapi.CallSubject, any1, "refusal"); got["code"] != "busy" || got["callId"] != "c1" {
		t.Errorf("answered %v", got)
	}
}

func TestAPanicIsAnswered(t *testing.T) {
	conn := connect(t)
	run(t, conn, &gate{panics: true}, nil)
	if got := ask(t, conn, natsapi.CallSubject, any1, "refusal"); got["code"] != "internal" {
		t.Errorf("answered %v", got)
	}
}

func TestARequestWithoutAReplyIsTaken(t *testing.T) {
	conn, g := connect(t), &gate{open: make(chan struct{})}
	close(g.open)
	run(t, conn, g, nil)
	if err := conn.Publish(natsapi.CallSubject, []byte(any1)); err != nil {
		t.Fatal(err)
	}
	g.wait(t, 1)
}
