package httpapi_test

import (
	"net"
	"net/http"
	"testing"
	"time"

	"treeline/internal/dispatch/httpapi"
)

func TestTheDoorIsOpenForAWhileAfterTheServerSaysThatItStops(t *testing.T) {
	s := newSite(t, func(c *httpapi.Config) { c.Timeouts.Grace, c.Timeouts.Notice = 20*time.Second, 3*time.Second })
	s.client.Transport = &http.Transport{DisableKeepAlives: true} // each request comes through the door
	_, token := s.Turn(t, "k1", "write_file", "run_code")
	s.do(t, "GET", "/readyz", "", "").want(t, 200, "")
	events := s.watch(t, token)
	start := time.Now()
	s.stop()
	for s.do(t, "GET", "/readyz", "", "").StatusCode == 200 {
		if time.Since(start) > time.Second {
			t.Fatal("still ready a second after it was stopped")
		}
	}
	s.do(t, "GET", "/readyz", "", "").want(t, 503, "stopping")
	s.do(t, "GET", "/livez", "", "").want(t, 200, "")
	r := s.do(t, "POST", "/v1/tools/write_file", token, `{"path":"a","content":"1"}`, "Idempotency-Key: c1")
	if r.want(t, 200, ""); r.json(t)["status"] != "ok" {
		t.Errorf("a call after that: %s", r.body)
	}
	if e := next(t, events); e.id != "c1" {
		t.Errorf("a stream of events that was open after that: %v", e)
	}
	s.do(t, "GET", "/readyz", "", "").want(t, 503, "stopping")
	if took := time.Since(start); took > 2900*time.Millisecond {
		t.Fatalf("this took %s: too slow to tell", took)
	}
	if err := <-s.ended; err != nil {
		t.Errorf("stopped with %v", err)
	}
	if took := time.Since(start); took < 3*time.Second || took > 15*time.Second {
		t.Errorf("stopping took %s", took)
	}
	if c, err := net.Dial("tcp", s.addr); err == nil {
		c.Close()
		t.Error("the door is still open")
	}
}

func TestTheNoticeLeavesHalfOfTheGracePeriodToEnd(t *testing.T) {
	s := newSite(t, func(c *httpapi.Config) { c.Timeouts.Grace, c.Timeouts.Notice = time.Second, time.Minute })
	start := time.Now()
	s.stop()
	if err := <-s.ended; err != nil {
		t.Errorf("stopped with %v", err)
	}
	if took := time.Since(start); took < 500*time.Millisecond || took > 20*time.Second {
		t.Errorf("stopping took %s", took)
	}
}
