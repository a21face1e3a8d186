package endtoend_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"runtime"
	"testing"
	"time"

	"treeline/internal/call"
)

// side is one who speaks HTTP with the fleet under a credential: the portal under its key, or a turn under its token.
type side struct {
	t    *testing.T
	name string
	url  string
	key  string
}

// reply is what a request was answered with.
type reply struct {
	status int
	header http.Header
	body   []byte
}

// fatalf fails the test and ends this goroutine, which is not the test's own.
func (s side) fatalf(format string, args ...any) {
	s.t.Helper()
	s.t.Errorf(s.name+": "+format, args...)
	runtime.Goexit()
}

// send makes a request; a body is raw bytes, or a value that goes as JSON. Headers are pairs of name and value.
func (s side) send(method, path string, body any, headers ...string) reply {
	s.t.Helper()
	raw, isRaw := body.([]byte)
	if !isRaw && body != nil {
		var err error
		if raw, err = json.Marshal(body); err != nil {
			s.fatalf("%s %s: %v", method, path, err)
		}
	}
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, bytes.NewReader(raw))
	if err != nil {
		s.fatalf("%s %s: %v", method, path, err)
	}
	r.Header.Set("Authorization", "Bearer "+s.key)
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		s.fatalf("%v", err)
	}
	answer, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close() // it was read to its end
	if err != nil {
		s.fatalf("%s %s: %v", method, path, err)
	}
	return reply{resp.StatusCode, resp.Header, answer}
}

// want makes a request that has to be answered with status.
func (s side) want(status int, method, path string, body any, headers ...string) reply {
	s.t.Helper()
	got := s.send(method, path, body, headers...)
	if got.status != status {
		s.fatalf("%s %s: status %d, want %d: %s", method, path, got.status, status, got.body)
	}
	return got
}

// problem makes a request that has to be refused with this status and code.
func (s side) problem(status int, code, method, path string, body any) {
	s.t.Helper()
	var p struct {
		Code   string `json:"code"`
		Status int    `json:"status"`
	}
	s.decode(s.want(status, method, path, body).body, &p)
	s.equal(method+" "+path, p.Code, code)
	s.equal(method+" "+path, p.Status, status)
}

func (s side) decode(b []byte, into any) {
	s.t.Helper()
	if err := json.Unmarshal(b, into); err != nil {
		s.fatalf("%v in %s", err, b)
	}
}

func (s side) equal(what string, got, want any) {
	s.t.Helper()
	if !reflect.DeepEqual(got, want) {
		s.fatalf("%s: %#v, want %#v", what, got, want)
	}
}

// patience bounds how long one call may take, among twenty jobs and on a machine that does other things too.
const patience = 5 * time.Minute

// call makes a call and waits for its result, as clients do: with the request for a while, then by asking again.
func (s side) call(id, tool string, arguments any) call.Result {
	s.t.Helper()
	got := s.send("POST", "/v1/tools/"+tool, arguments, "Idempotency-Key", id, "Prefer", "wait=5")
	for begun := time.Now(); got.status == http.StatusAccepted; got = s.send("GET", "/v1/calls/"+id, nil) {
		if where := got.header.Get("Location"); where != "/v1/calls/"+id {
			s.fatalf("%s: an unfinished call is at %q", id, where)
		}
		if time.Since(begun) > patience {
			s.fatalf("%s is not done after %s: %s", id, patience, got.body)
		}
		select {
		case <-time.After(500 * time.Millisecond):
		case <-s.t.Context().Done():
			s.fatalf("%s: the test ended", id)
		}
	}
	if got.status != http.StatusOK {
		s.fatalf("%s %s: status %d: %s", id, tool, got.status, got.body)
	}
	var r call.Result
	s.decode(got.body, &r)
	if r.CallID != id || r.Tool != tool {
		s.fatalf("%s %s is answered with the result of %s %s", id, tool, r.CallID, r.Tool)
	}
	return r
}

// did makes a call that has to succeed at this place in the conversation's order.
func (s side) did(seq int64, id, tool string, arguments any) call.Result {
	s.t.Helper()
	r := s.call(id, tool, arguments)
	if r.Status != call.OK || r.Code != "" || r.IsError || r.Seq != seq {
		s.fatalf("%s %s: %s %s at seq %d, want ok at %d: %s", id, tool, r.Status, r.Code, r.Seq, seq, call.TextOf(r.Content))
	}
	return r
}

// refused makes a call that has to be refused with this code, and gives the words.
func (s side) refused(code call.Code, id, tool string, arguments any) string {
	s.t.Helper()
	r := s.call(id, tool, arguments)
	if r.Status != call.Refused || r.Code != code || !r.IsError || !r.Changes.Empty() {
		s.fatalf("%s %s: %s %s %+v, want refused %s: %s", id, tool, r.Status, r.Code, r.Changes, code, call.TextOf(r.Content))
	}
	return call.TextOf(r.Content)
}

// jsonOf is a value as JSON, for a comparison that shows both sides readably.
func jsonOf(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprintf("%#v", v)
	}
	return string(b)
}
