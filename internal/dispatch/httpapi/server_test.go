package httpapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"treeline/internal/devenv/devtest"
	"treeline/internal/dispatch/dispatchtest"
	"treeline/internal/dispatch/httpapi"
	"treeline/internal/store"
	"treeline/internal/store/db"
	"treeline/internal/workspace"
)

func TestMain(m *testing.M) { devtest.Main(m) }

const (
	portalKey = "portal-key-of-tests"
	nextKey   = "portal-key-to-come"
	viewerKey = "viewer-key-of-tests"
)

// site is a server on loopback over a real fleet, and a client of it.
type site struct {
	*dispatchtest.Fleet
	addr, url string
	client    *http.Client
	log       *logged
	stop      context.CancelFunc
	ended     chan error
	contract  contract
}

// logged is what the server has logged; it may be read while the server runs.
type logged struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func newSite(t *testing.T, change func(*httpapi.Config)) *site {
	t.Helper()
	f := dispatchtest.New(t)
	f.Work(t)
	return serve(t, f, change)
}

func serve(t *testing.T, f *dispatchtest.Fleet, change func(*httpapi.Config)) *site {
	t.Helper()
	keys, err := httpapi.ParseKeys(portalKey+"\n"+nextKey+"\n", viewerKey)
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &site{Fleet: f, addr: ln.Addr().String(), url: "http://" + ln.Addr().String(), log: &logged{}, ended: make(chan error, 1),
		client: &http.Client{Timeout: 30 * time.Second, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
	cfg := httpapi.Config{Dispatcher: f.Dispatcher, Library: store.NewPortal(db.New(f.Pool)), Keys: keys,
		Limits: workspace.DefaultLimits(), Listen: s.addr, Log: zerolog.New(s.log)}
	cfg.Timeouts.Grace = 2 * time.Second
	if change != nil {
		change(&cfg)
	}
	server, err := httpapi.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	var ctx context.Context
	ctx, s.stop = context.WithCancel(context.Background())
	go func() { s.ended <- server.Serve(ctx, ln); close(s.ended) }()
	t.Cleanup(func() { s.client.CloseIdleConnections(); s.stop(); <-s.ended })
	return s
}

// reply is an answer, read whole.
type reply struct {
	*http.Response
	body []byte
}

// do sends a request. Headers come as "Name: value"; the first may be a bare token.
func (s *site) do(t *testing.T, method, path, token, body string, headers ...string) reply {
	t.Helper()
	r, err := http.NewRequest(method, s.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if body == "" {
		r.Body, r.ContentLength = http.NoBody, 0
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		if name == "Host" {
			r.Host = value
			continue
		}
		r.Header.Add(name, value)
	}
	resp, err := s.client.Do(r)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("%s %s: read the answer: %v", method, path, err)
	}
	answer := reply{resp, b}
	s.contract.check(t, s, method, path, answer)
	return answer
}

func (r reply) json(t *testing.T) map[string]any {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal(r.body, &v); err != nil {
		t.Fatalf("%d %s is no JSON object: %v", r.StatusCode, r.body, err)
	}
	return v
}

// want fails unless the answer has the status and, for an error, is a problem document of the code.
func (r reply) want(t *testing.T, status int, code string) reply {
	t.Helper()
	if r.StatusCode != status {
		t.Fatalf("status %d, want %d: %s", r.StatusCode, status, r.body)
	}
	if code == "" {
		return r
	}
	if got := r.Header.Get("Content-Type"); got != "application/problem+json" {
		t.Errorf("Content-Type %q of an error", got)
	}
	p := r.json(t)
	if p["code"] != code || p["status"] != float64(status) || p["title"] != http.StatusText(status) || p["type"] == nil || p["detail"] == nil {
		t.Errorf("problem %v, want code %q and status %d", p, code, status)
	}
	return r
}

func TestWriteListReadAndDeleteOverHTTP(t *testing.T) {
	s := newSite(t, nil)
	s.do(t, "PUT", "/v1/conversations/k1", portalKey, "{}").want(t, 201, "")
	s.do(t, "PUT", "/v1/conversations/k1", nextKey, "{}").want(t, 200, "")
	opened := s.do(t, "POST", "/v1/conversations/k1/turns", portalKey,
		`{"turnId":"t1","caller":{"user":"ann","department":"sales","collections":["c"]},"tools":["write_file","read_file","calculate","no_tool"],"model":{"vision":true}}`).
		want(t, 201, "").json(t)
	if opened["turnId"] != "t1" {
		t.Errorf("opened %v", opened)
	}
	token, _ := opened["token"].(string)

	r := s.do(t, "POST", "/v1/tools/write_file", token, `{"path":"notes/a.txt","content":"one\n"}`, "Idempotency-Key: c1").want(t, 200, "").json(t)
	if r["status"] != "ok" || r["callId"] != "c1" || r["turnId"] != "t1" || r["seq"] != 1.0 {
		t.Errorf("result %v", r)
	}
	s.do(t, "GET", "/v1/calls/c1", token, "").want(t, 200, "")
	s.do(t, "GET", "/v1/calls/c2", token, "").want(t, 404, "not_found")

	s.do(t, "PUT", "/v1/conversations/k1/files/b%20%C3%A9.bin", portalKey, "\x00\x01", "Treeline-Actor: bob").want(t, 201, "")
	s.do(t, "PUT", "/v1/conversations/k1/files/b%20%C3%A9.bin", portalKey, "\x00\x02").want(t, 200, "")
	list := s.do(t, "GET", "/v1/conversations/k1/files", viewerKey, "").want(t, 200, "").json(t)
	if list["totalFiles"] != 2.0 || list["totalBytes"] != 6.0 {
		t.Errorf("files %v", list)
	}
	got := s.do(t, "GET", "/v1/conversations/k1/files/b%20%C3%A9.bin", portalKey, "").want(t, 200, "")
	if string(got.body) != "\x00\x02" || got.Header.Get("Content-Disposition") != `attachment; filename="b _.bin"; filename*=UTF-8''b%20%C3%A9.bin` ||
		got.Header.Get("X-Content-Type-Options") != "nosniff" || got.Header.Get("Content-Security-Policy") != "sandbox" {
		t.Errorf("file %q with %v", got.body, got.Header)
	}
	deleted := s.do(t, "DELETE", "/v1/conversations/k1/files/notes/a.txt", portalKey, "").want(t, 200, "").json(t)
	if deleted["seq"] != 4.0 {
		t.Errorf("deleted %v", deleted)
	}
	s.do(t, "GET", "/v1/conversations/k1/files/notes/a.txt", portalKey, "").want(t, 404, "path_not_found")
	s.do(t, "POST", "/v1/turns/t1/close", portalKey, "{}").want(t, 204, "")
	r = s.do(t, "POST", "/v1/tools/write_file", token, `{"path":"c","content":""}`).want(t, 200, "").json(t)
	if r["code"] != "turn_closed" {
		t.Errorf("a closed turn answers %v", r)
	}
	s.do(t, "DELETE", "/v1/conversations/k1", portalKey, "").want(t, 204, "")
	s.do(t, "PUT", "/v1/conversations/k1", portalKey, "{}").want(t, 409, "conversation_deleted")
	s.do(t, "POST", "/v1/conversations/k1/restore", portalKey, "{}").want(t, 200, "")
	if s := s.log.String(); strings.Contains(s, token) || strings.Contains(s, portalKey) {
		t.Error("the log holds a token or a key")
	}
}
