package httpapi_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"treeline/internal/devenv/devtest"
	"treeline/internal/dispatch/dispatchtest"
	"treeline/internal/dispatch/httpapi"
	"treeline/internal/store"
)

func TestReadinessIsNotLiveness(t *testing.T) {
	var down atomic.Bool
	s := newSite(t, func(c *httpapi.Config) {
		c.Ready = func() error {
			if down.Load() {
				return errors.New("the queue at 10.0.0.7 is gone")
			}
			return nil
		}
	})
	s.do(t, "GET", "/livez", "", "").want(t, 200, "")
	s.do(t, "GET", "/readyz", "", "").want(t, 200, "")
	down.Store(true)
	s.do(t, "GET", "/livez", "", "").want(t, 200, "")
	r := s.do(t, "GET", "/readyz", "", "").want(t, 503, "not_ready")
	if strings.Contains(string(r.body), "10.0.0.7") || r.Header.Get("Retry-After") == "" {
		t.Errorf("%s with %v", r.body, r.Header)
	}
}

func TestMetricsNameRoutesByTheirPattern(t *testing.T) {
	s := newSite(t, func(c *httpapi.Config) { c.Metrics = prometheus.NewRegistry() })
	s.do(t, "GET", "/v1/conversations/k7", portalKey, "")
	s.do(t, "GET", "/nothing/k8", "", "")
	s.do(t, "BREW", "/livez", "", "")
	text := string(s.do(t, "GET", "/metrics", "", "").want(t, 200, "").body)
	for _, line := range []string{
		`treeline_http_requests_total{method="GET",route="/v1/conversations/{id}",status="404"} 1`,
		`treeline_http_requests_total{method="GET",route="none",status="404"} 1`,
		`treeline_http_requests_total{method="other",route="none",status="405"} 1`,
	} {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("no line %s", line)
		}
	}
	if strings.Contains(text, "k7") || strings.Contains(text, "k8") {
		t.Error("an id is in the metrics")
	}
}

// logged are the lines of the log about requests of a method, once there is one.
func (s *site) logged(method string) (lines []map[string]any) {
	for deadline := time.Now().Add(5 * time.Second); len(lines) == 0 && time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		for _, line := range strings.Split(strings.TrimSpace(s.log.String()), "\n") {
			var v map[string]any
			if json.Unmarshal([]byte(line), &v) == nil && v["method"] == method {
				lines = append(lines, v)
			}
		}
	}
	return lines
}

func TestTheLogNamesTheConversationOfAStoredResult(t *testing.T) {
	s := newLibrary(t)
	s.Turn(t, "k1", "write_file")
	s.do(t, "PUT", "/v1/conversations/k1/results/ref1", portalKey, `{"toolName":"fetch","isError":false,"output":"x"}`).want(t, 201, "")
	lines := s.logged("PUT")
	if len(lines) != 1 || lines[0]["conversation"] != "k1" {
		t.Errorf("logged %v, want a line of the conversation k1", lines)
	}
}

func TestTheLogHasOneLineARequest(t *testing.T) {
	s := newSite(t, nil)
	turnID, token := s.Turn(t, "k1", "write_file")
	s.do(t, "POST", "/v1/tools/write_file", token, `{"path":"secret-name","content":"secret-text"}`, "Idempotency-Key: c1").want(t, 200, "")
	lines := s.logged("POST")
	if len(lines) != 1 {
		t.Fatalf("%d lines", len(lines))
	}
	for key, want := range map[string]any{"method": "POST", "route": "/v1/tools/{tool}", "status": 200.0, "conversation": "k1", "turn": turnID,
		"call": "c1", "tool": "write_file"} {
		if lines[0][key] != want {
			t.Errorf("%s is %v, want %v", key, lines[0][key], want)
		}
	}
	for _, secret := range []string{token, "secret-name", "secret-text"} {
		if strings.Contains(s.log.String(), secret) {
			t.Errorf("the log holds %q", secret)
		}
	}
}

func TestAPanicIsAnErrorWithoutDetails(t *testing.T) {
	s := newSite(t, func(c *httpapi.Config) {
		c.More = []httpapi.Route{{Method: "GET", Pattern: "/v1/broken", ID: "broken", Summary: "Panics.",
			Handle: func(http.ResponseWriter, *http.Request) error { panic("at the database of 10.0.0.7") }}}
	})
	r := s.do(t, "GET", "/v1/broken", "", "").want(t, 500, "internal")
	if strings.Contains(string(r.body), "10.0.0.7") {
		t.Errorf("told %s", r.body)
	}
	s.do(t, "GET", "/livez", "", "").want(t, 200, "")
}

func TestRoutesThatContradictEachOtherAreNoServer(t *testing.T) {
	route := httpapi.Route{Method: "GET", Pattern: "/livez", ID: "x", Handle: func(http.ResponseWriter, *http.Request) error { return nil }}
	unknown := route
	unknown.Pattern, unknown.Responses = "/x", []httpapi.Response{{Status: 200, Schema: "NoSuchSchema"}}
	for _, r := range []httpapi.Route{route, unknown} {
		if _, err := httpapi.New(httpapi.Config{More: []httpapi.Route{r}}); err == nil {
			t.Errorf("a server with %s was made", r.Pattern)
		}
	}
}

// The document is made from the table that the mux is made from; this holds it to the server as it answers.
func TestEveryDescribedOperationIsServedAndEveryRouteDescribed(t *testing.T) {
	s := newSite(t, nil)
	var doc struct {
		OpenAPI string
		Paths   map[string]map[string]struct {
			OperationID string `json:"operationId"`
			Responses   map[string]any
			Security    []map[string]any
		}
		Components struct{ Schemas map[string]any }
	}
	if err := json.Unmarshal(s.do(t, "GET", "/openapi.json", "", "").want(t, 200, "").body, &doc); err != nil {
		t.Fatal(err)
	}
	if doc.OpenAPI != "3.1.0" || len(doc.Components.Schemas) == 0 {
		t.Errorf("document %s with %d schemas", doc.OpenAPI, len(doc.Components.Schemas))
	}
	described, ids := map[string]bool{}, map[string]bool{}
	for path, methods := range doc.Paths {
		concrete := strings.NewReplacer("{id}", "nobody", "{callId}", "c1", "{tool}", "x", "{path}", "x").Replace(path)
		for method, o := range methods {
			method = strings.ToUpper(method)
			described[method+" "+path] = true
			if o.OperationID == "" || ids[o.OperationID] {
				t.Errorf("%s %s has the id %q", method, path, o.OperationID)
			}
			ids[o.OperationID] = true
			got := s.do(t, method, concrete, "", "").StatusCode
			want := 200
			if len(o.Security) > 0 {
				want = 401
			}
			if got != want {
				t.Errorf("%s %s without a key: status %d, want %d", method, path, got, want)
			}
		}
	}
	server, err := httpapi.New(httpapi.Config{Log: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range server.Routes() {
		if name := r.Method + " " + strings.ReplaceAll(r.Pattern, "...", ""); !described[name] {
			t.Errorf("%s is not described", name)
		}
	}
}

func TestWithoutItsDatabaseTheServerSaysUnavailable(t *testing.T) {
	postgres, database := devtest.OwnPostgres(t, store.Migrate)
	f := dispatchtest.On(t, database.URL)
	s := serve(t, f, nil)
	_, token := f.Turn(t, "k1", "write_file")
	s.do(t, "GET", k1, portalKey, "").want(t, 200, "")
	if err := postgres.Kill(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ method, path, token, body string }{
		{"GET", "/v1/tools", token, ""},
		{"POST", "/v1/tools/write_file", token, `{"path":"a","content":""}`},
		{"GET", "/v1/calls/c1", token, ""},
		{"POST", "/v1/calls/c1/cancel", token, ""},
		{"GET", "/v1/events", token, ""},
		{"PUT", k1, portalKey, ""},
		{"GET", k1, portalKey, ""},
		{"DELETE", k1, portalKey, ""},
		{"POST", k1 + "/restore", portalKey, ""},
		{"POST", k1 + "/turns", portalKey, `{"caller":{"user":"u","department":"d"},"tools":[]}`},
		{"POST", "/v1/turns/t1/close", portalKey, ""},
		{"GET", k1 + "/files", portalKey, ""},
		{"GET", k1 + "/files/a", portalKey, ""},
		{"PUT", k1 + "/files/a", portalKey, "x"},
		{"DELETE", k1 + "/files/a", portalKey, ""},
		{"GET", k1 + "/archive", portalKey, ""},
		{"GET", k1 + "/steps", portalKey, ""},
		{"GET", k1 + "/changes", portalKey, ""},
		{"POST", k1 + "/revert", portalKey, `{"beforeSeq":1}`},
	} {
		r := s.do(t, c.method, c.path, c.token, c.body)
		if r.StatusCode != 503 || r.Header.Get("Retry-After") == "" || r.json(t)["code"] != "unavailable" {
			t.Errorf("%s %s: %d %s", c.method, c.path, r.StatusCode, r.body)
		}
	}
	s.do(t, "GET", "/livez", "", "").want(t, 200, "")
	if err := postgres.Restart(context.Background()); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		if s.do(t, "GET", k1, portalKey, "").StatusCode == 200 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("the server did not find its database again")
		}
	}
}

// A server answers through any http.ResponseWriter, also one that knows no deadlines.
func TestServeHTTPWithoutAConnection(t *testing.T) {
	server, err := httpapi.New(httpapi.Config{Log: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	server.ServeHTTP(w, httptest.NewRequest("GET", "http://localhost/livez", strings.NewReader("a body")))
	if w.Code != 200 {
		t.Errorf("status %d", w.Code)
	}
}
