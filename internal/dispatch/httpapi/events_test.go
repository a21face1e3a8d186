package httpapi_test

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"treeline/internal/call"
)

// sse is one event, parsed.
type sse struct{ kind, id, data string }

// watch subscribes to a turn's events; the channel is closed when the stream ends.
func (s *site) watch(t *testing.T, token string) <-chan sse {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, "GET", s.url+"/v1/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("status %d, headers %v", resp.StatusCode, resp.Header)
	}
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 4<<20)
	if !lines.Scan() || !strings.HasPrefix(lines.Text(), ":") {
		t.Fatalf("the stream begins with %q", lines.Text())
	}
	out := make(chan sse, 100)
	go func() {
		defer close(out)
		defer resp.Body.Close()
		var e sse
		for lines.Scan() {
			name, value, _ := strings.Cut(lines.Text(), ": ")
			switch name {
			case "event":
				e.kind = value
			case "id":
				e.id = value
			case "data":
				e.data = value
				out <- e
				e = sse{}
			}
		}
	}()
	return out
}

func next(t *testing.T, events <-chan sse) sse {
	t.Helper()
	select {
	case e, open := <-events:
		if !open {
			t.Fatal("the stream has ended")
		}
		return e
	case <-time.After(10 * time.Second):
		t.Fatal("no event came")
	}
	return sse{}
}

func TestEventsAreTheTurnsOwn(t *testing.T) {
	s := newSite(t, nil)
	turnID, token := s.Turn(t, "k1", "write_file")
	_, other := s.Turn(t, "k1", "write_file")
	events := s.watch(t, token)
	s.do(t, "POST", "/v1/tools/write_file", other, `{"path":"o","content":"1"}`, "Idempotency-Key: other").want(t, 200, "")
	s.do(t, "POST", "/v1/tools/write_file", token, `{"path":"a","content":"line\nline\r\n"}`, "Idempotency-Key: c1").want(t, 200, "")
	s.do(t, "POST", "/v1/tools/write_file", token, `{"path":"../a","content":""}`, "Idempotency-Key: c2").want(t, 200, "")
	got := map[string]call.Result{}
	for range 2 {
		e := next(t, events)
		var r call.Result
		if err := json.Unmarshal([]byte(e.data), &r); err != nil {
			t.Fatalf("%v: %v", e, err)
		}
		if e.kind != "result" || e.id != r.CallID || r.TurnID != turnID {
			t.Errorf("event %v", e)
		}
		got[r.CallID] = r
	}
	if got["c1"].Status != call.OK || got["c2"].Code != call.PathInvalid {
		t.Errorf("results %v", got)
	}
	key := call.Key{Conversation: "k1", Turn: turnID, Call: "c3"}
	if err := s.Queue.PublishProgress(key, []byte(`{"callId":"c3", "stream":"stdout","text":"a\nb"}`)); err != nil {
		t.Fatal(err)
	}
	if e := next(t, events); e.kind != "progress" || e.id != "c3" || e.data != `{"callId":"c3","stream":"stdout","text":"a\nb"}` {
		t.Errorf("progress %v", e)
	}
}

func TestStoppingEndsStreamsAndAnswersWaits(t *testing.T) {
	s := newSite(t, nil)
	_, token := s.Turn(t, "k1", "run_code")
	events := s.watch(t, token)
	waited := make(chan reply, 1)
	go func() {
		waited <- s.do(t, "POST", "/v1/tools/run_code", token, `{"code":"1"}`, "Idempotency-Key: c1", "Prefer: wait=30")
	}()
	for deadline := time.Now().Add(10 * time.Second); s.do(t, "GET", "/v1/calls/c1", token, "").StatusCode != 202; {
		if time.Now().After(deadline) {
			t.Fatal("the call was not accepted")
		}
	}
	start := time.Now()
	s.stop()
	if _, open := <-events; open {
		t.Error("an event came")
	}
	if r := <-waited; r.StatusCode != 202 || r.Header.Get("Location") != "/v1/calls/c1" {
		t.Errorf("the wait was answered with %d, %v", r.StatusCode, r.Header)
	}
	if err := <-s.ended; err != nil {
		t.Errorf("stopped with %v", err)
	}
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("stopping took %s", took)
	}
}
