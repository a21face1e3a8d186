package httpapi_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"treeline/internal/dispatch/httpapi"
)

// impatient is a site whose clients must get on within a fraction of a second.
func impatient(t *testing.T) *site {
	return newSite(t, func(c *httpapi.Config) {
		c.Timeouts.Header, c.Timeouts.Idle = 300*time.Millisecond, 300*time.Millisecond
		c.Timeouts.Body, c.Timeouts.Write, c.Timeouts.KeepAlive = 300*time.Millisecond, 300*time.Millisecond, 50*time.Millisecond
	})
}

func (s *site) dial(t *testing.T, send string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if _, err := io.WriteString(c, send); err != nil {
		t.Fatal(err)
	}
	return c
}

// wantClosed fails unless the server closes the connection within two seconds; it gives what came before.
func wantClosed(t *testing.T, c net.Conn) string {
	t.Helper()
	if err := c.SetReadDeadline(time.Now().Add(2 * time.Second)); err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(c)
	if e, ok := err.(net.Error); ok && e.Timeout() {
		t.Fatalf("the connection is still open; it said %q", b)
	}
	return string(b)
}

func TestClientsThatDoNotGetOnAreCutOff(t *testing.T) {
	s := impatient(t)
	_, token := s.Turn(t, "k1", "write_file")
	bearer := "Host: localhost\r\nAuthorization: Bearer "
	t.Run("nothing at all", func(t *testing.T) { wantClosed(t, s.dial(t, "")) })
	t.Run("half a header", func(t *testing.T) { wantClosed(t, s.dial(t, "GET /v1/tools HTTP/1.1\r\nHost: loc")) })
	t.Run("a header byte by byte", func(t *testing.T) {
		c := s.dial(t, "GET /v1/tools HTTP/1.1\r\nX-A: ")
		start := time.Now()
		for time.Since(start) < 2*time.Second {
			if _, err := io.WriteString(c, "a"); err != nil {
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
		t.Error("a header was read for two seconds")
	})
	t.Run("half a body", func(t *testing.T) {
		got := wantClosed(t, s.dial(t, "POST /v1/tools/write_file HTTP/1.1\r\n"+bearer+token+"\r\nContent-Length: 50\r\n\r\n{\"path\":"))
		if !strings.HasPrefix(got, "HTTP/1.1 408 ") || !strings.Contains(got, `"code":"body_timeout"`) {
			t.Errorf("answer %q", got)
		}
	})
	t.Run("half an upload", func(t *testing.T) {
		got := wantClosed(t, s.dial(t, "PUT /v1/conversations/k1/files/a HTTP/1.1\r\n"+bearer+portalKey+"\r\nContent-Length: 3000000\r\n\r\n"+strings.Repeat("x", 2000000)))
		if !strings.HasPrefix(got, "HTTP/1.1 408 ") {
			t.Errorf("answer %q", got)
		}
		s.wantNothingStaged(t)
	})
	t.Run("a body byte by byte", func(t *testing.T) {
		c := s.dial(t, "POST /v1/tools/write_file HTTP/1.1\r\n"+bearer+token+"\r\nContent-Length: 5000\r\n\r\n")
		start := time.Now()
		for time.Since(start) < 2*time.Second {
			if _, err := io.WriteString(c, "x"); err != nil {
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
		t.Error("a body was read for two seconds")
	})
	t.Run("a body nobody reads", func(t *testing.T) {
		got := wantClosed(t, s.dial(t, "POST /v1/tools/write_file HTTP/1.1\r\nHost: localhost\r\nContent-Length: 50\r\n\r\n{"))
		if !strings.HasPrefix(got, "HTTP/1.1 401 ") {
			t.Errorf("answer %q", got)
		}
	})
	t.Run("half-closed within a body", func(t *testing.T) {
		c := s.dial(t, "POST /v1/tools/write_file HTTP/1.1\r\n"+bearer+token+"\r\nContent-Length: 50\r\n\r\n{\"path\":")
		if err := c.(*net.TCPConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		if got := wantClosed(t, c); !strings.HasPrefix(got, "HTTP/1.1 400 ") || !strings.Contains(got, `"code":"body_incomplete"`) {
			t.Errorf("answer %q", got)
		}
	})
	t.Run("a client that reads nothing", func(t *testing.T) {
		s.do(t, "PUT", k1+"/files/large", portalKey, strings.Repeat("x", 30<<20)).want(t, 201, "")
		c := s.dial(t, "GET /v1/conversations/k1/files/large HTTP/1.1\r\n"+bearer+portalKey+"\r\n\r\n")
		time.Sleep(1500 * time.Millisecond)
		if err := c.SetReadDeadline(time.Now().Add(5 * time.Second)); err != nil {
			t.Fatal(err)
		}
		if n, err := io.Copy(io.Discard, c); n >= 30<<20 || err == nil && n == 0 {
			t.Errorf("%d bytes came, %v", n, err)
		}
	})
}

func TestClientsThatGetOnAreNotCutOff(t *testing.T) {
	s := impatient(t)
	_, token := s.Turn(t, "k1", "run_code")
	t.Run("a slow upload", func(t *testing.T) {
		in, out := io.Pipe()
		go func() {
			for range 8 { // longer than the time of one stretch
				time.Sleep(100 * time.Millisecond)
				_, _ = out.Write(make([]byte, 128<<10))
			}
			out.Close()
		}()
		r, err := http.NewRequest("PUT", s.url+k1+"/files/slow", in)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+portalKey)
		resp, err := s.client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != 201 {
			t.Errorf("status %d", resp.StatusCode)
		}
	})
	t.Run("a wait for a result", func(t *testing.T) {
		for range 2 { // twice on one connection
			s.do(t, "POST", "/v1/tools/run_code", token, `{"code":"1"}`, "Prefer: wait=1").want(t, 202, "")
		}
	})
	t.Run("a stream of events", func(t *testing.T) {
		c := s.dial(t, fmt.Sprintf("GET /v1/events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n\r\n", token))
		if err := c.SetReadDeadline(time.Now().Add(5 * time.Second)); err != nil {
			t.Fatal(err)
		}
		lines, comments := bufio.NewScanner(c), 0
		for comments < 20 && lines.Scan() {
			if strings.HasPrefix(lines.Text(), ": ") {
				comments++
			}
		}
		if comments < 20 {
			t.Errorf("%d comments came: %v", comments, lines.Err())
		}
	})
}

func TestAnEarlyAnswerToALargeBodyArrives(t *testing.T) {
	s := newSite(t, nil)
	s.do(t, "POST", "/v1/tools/write_file", "nobody", strings.Repeat("x", 6<<20)).want(t, 401, "turn_unknown")
	s.do(t, "PUT", k1+"/files/a", "nobody", strings.Repeat("x", 6<<20)).want(t, 401, "unauthorized")
	c := s.dial(t, "PUT /v1/conversations/k1/files/a HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 1000000000\r\n\r\n")
	if got := wantClosed(t, c); !strings.HasPrefix(got, "HTTP/1.1 401 ") {
		t.Errorf("a client that asked first was told %q", got)
	}
}
