package client_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"treeline/client"
)

// server stands for a Treeline that answers each request as script says, in order.
func server(t *testing.T, script ...func(w http.ResponseWriter, r *http.Request, body string)) (*client.Client, *[]string) {
	t.Helper()
	var seen []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		seen = append(seen, r.Method+" "+r.URL.Path+" "+r.Header.Get("Idempotency-Key")+" "+string(body))
		if r.Header.Get("Authorization") != "Bearer token" {
			t.Errorf("Authorization %q", r.Header.Get("Authorization"))
		}
		if len(seen) > len(script) {
			t.Errorf("one request too many: %s", seen[len(seen)-1])
			return
		}
		script[len(seen)-1](w, r, string(body))
	}))
	t.Cleanup(s.Close)
	return client.New(s.URL+"/", "token", s.Client()), &seen
}

func says(status int, body string) func(http.ResponseWriter, *http.Request, string) {
	return func(w http.ResponseWriter, _ *http.Request, _ string) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

const (
	done    = `{"callId":"c1","tool":"write_file","seq":7,"status":"ok","content":[{"type":"text","text":"ok"}],"replayArguments":{"path":"a"}}`
	pending = `{"callId":"c1","seq":7,"state":"running"}`
	down    = `{"status":503,"code":"unavailable","title":"Service Unavailable","detail":"not now"}`
)

func TestACallIsWaitedFor(t *testing.T) {
	c, seen := server(t, says(503, down), says(202, pending), says(200, done))
	r, err := c.Call(t.Context(), client.Call{ID: "c1", Tool: "write_file", Arguments: map[string]string{"path": "a"}})
	if err != nil || r.Status != client.OK || r.Seq != 7 || r.Content[0].Text != "ok" {
		t.Fatalf("%+v, error %v", r, err)
	}
	want := `POST /v1/tools/write_file c1 {"path":"a"}`
	for _, got := range *seen {
		if got != want {
			t.Errorf("sent %s, want %s", got, want)
		}
	}
}

func TestARefusalIsAResult(t *testing.T) {
	c, seen := server(t, says(200, `{"callId":"x","status":"refused","code":"path_not_found"}`))
	r, err := c.Call(t.Context(), client.Call{Tool: "read_file"})
	if err != nil || r.Status != client.Refused || r.Code != "path_not_found" {
		t.Errorf("%+v, error %v", r, err)
	}
	if got := (*seen)[0]; !strings.HasPrefix(got, "POST /v1/tools/read_file call-") || !strings.HasSuffix(got, " {}") {
		t.Errorf("sent %s", got)
	}
}

func TestAProblemIsAnError(t *testing.T) {
	c, _ := server(t, says(401, `{"status":401,"code":"turn_unknown","title":"Unauthorized","detail":"The token opens no turn."}`), says(500, "<html>"))
	var p *client.Problem
	if _, err := c.Call(t.Context(), client.Call{Tool: "read_file"}); !errors.As(err, &p) || p.Status != 401 || p.Code != "turn_unknown" {
		t.Errorf("error %v", err)
	}
	if _, err := c.Tools(t.Context()); !errors.As(err, &p) || p.Status != 500 {
		t.Errorf("error %v", err)
	}
}

func TestWaitAndCancel(t *testing.T) {
	c, seen := server(t, says(202, pending), says(200, done), says(202, pending), says(200, `{"status":"failed","code":"cancelled"}`))
	if r, err := c.Wait(t.Context(), "c1"); err != nil || r.Status != client.OK {
		t.Errorf("%+v, error %v", r, err)
	}
	if r, err := c.Cancel(t.Context(), "c1"); err != nil || r.Status != client.Failed || r.Code != "cancelled" {
		t.Errorf("%+v, error %v", r, err)
	}
	want := "GET /v1/calls/c1  ,GET /v1/calls/c1  ,POST /v1/calls/c1/cancel  ,GET /v1/calls/c1  "
	if got := strings.Join(*seen, ","); got != want {
		t.Errorf("sent %q, want %q", got, want)
	}
}

func TestTheContextEndsAWait(t *testing.T) {
	c, _ := server(t, says(202, pending), says(202, pending), says(202, pending), says(202, pending), says(202, pending))
	ctx, cancel := context.WithTimeout(t.Context(), 250*time.Millisecond)
	defer cancel()
	if _, err := c.Wait(ctx, "c1"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
}

func TestTools(t *testing.T) {
	c, _ := server(t, says(200, `{"tools":[{"name":"read_file","description":"Reads.","inputSchema":{"type":"object"}}]}`))
	tools, err := c.Tools(t.Context())
	if err != nil || len(tools) != 1 || tools[0].Name != "read_file" || string(tools[0].InputSchema) != `{"type":"object"}` {
		t.Errorf("%+v, error %v", tools, err)
	}
}
