package queue

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"
)

// logged is a log that may be read while it is written.
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

// status is a message of the server about a request.
func status(subject, code, description string) *nats.Msg {
	m := nats.NewMsg(subject)
	m.Header.Set("Status", code)
	m.Header.Set("Description", description)
	return m
}

// requests gives what is asked for on a lane: the inbox of each request.
func (b *bench) requests(nc *nats.Conn) <-chan string {
	b.t.Helper()
	inboxes := make(chan string, 100)
	if _, err := nc.Subscribe("$JS.API.CONSUMER.MSG.NEXT."+CallsStream+".file", func(m *nats.Msg) { inboxes <- m.Reply }); err != nil {
		b.t.Fatal(err)
	}
	if err := nc.Flush(); err != nil {
		b.t.Fatal(err)
	}
	return inboxes
}

func (b *bench) conn() *nats.Conn {
	b.t.Helper()
	nc, err := nats.Connect(b.server.URL())
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(nc.Close)
	return nc
}

func (b *bench) inbox(inboxes <-chan string) string {
	b.t.Helper()
	select {
	case inbox := <-inboxes:
		return inbox
	case <-time.After(soon):
		b.t.Fatal("nothing was asked for")
		return ""
	}
}

// What piles up for a slot while it, or the whole process, cannot read must not push an event out.
func TestWhatPilesUpForABusySlotLosesNoEvent(t *testing.T) {
	b := newBench(t)
	var log logged
	q, err := Connect(context.Background(), Options{URL: b.server.URL(), Name: "slow"}, DefaultConfig(), zerolog.New(&log))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(q.Close)
	nc := b.conn()
	inboxes := b.requests(nc)
	hold := make(chan struct{})
	c := consume(t, q, 1, func(context.Context, Delivery) error { <-hold; return nil })
	inbox := b.inbox(inboxes)
	b.publish(event("c1"))
	c.next(soon)
	for range 50 {
		if err := nc.PublishMsg(status(inbox, "100", "Idle Heartbeat")); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(nc.Flush(), q.nc.Flush()); err != nil { // they have arrived
		t.Fatal(err)
	}
	b.publish(event("c2"))
	close(hold)
	c.next(3 * time.Second) // at once, and not after AckWait
	b.drained()
	if s := log.String(); strings.Contains(s, "slow consumer") {
		t.Errorf("logged %s", s)
	}
}

func TestWhatTheServerSaysOfARequestIsHeeded(t *testing.T) {
	for _, c := range []struct {
		name, code, description string
		want                    error // nil where it asks again by itself
	}{
		{"its time is up", "408", "Request Timeout", nil},
		{"nothing is there", "404", "No Messages", nil},
		{"the consumer is gone", "409", "Consumer Deleted", jetstream.ErrConsumerDeleted},
		{"nobody has streams", "503", "", nats.ErrNoResponders},
		{"the server ends", "409", "Server Shutdown", errors.New(`ask for an event: the queue says 409 "Server Shutdown"`)},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			nc := b.conn()
			inboxes := b.requests(nc)
			p, err := newPuller(b.nc, "file")
			if err != nil {
				t.Fatal(err)
			}
			defer p.stop()
			type got struct {
				m   *nats.Msg
				err error
			}
			come := make(chan got, 1)
			go func() { m, err := p.next(); come <- got{m, err} }()
			first := b.inbox(inboxes)
			for _, m := range []*nats.Msg{status(first+"9", "409", "Consumer Deleted"), status(first, "100", "Idle Heartbeat"), status(first, c.code, c.description)} {
				if err := nc.PublishMsg(m); err != nil {
					t.Fatal(err)
				}
			}
			if c.want == nil {
				if again := b.inbox(inboxes); again == first {
					t.Errorf("asked again as %s, by which it would not tell one request from the other", again)
				}
				b.publish(event("c1"))
			}
			select {
			case g := <-come:
				switch {
				case c.want == nil:
					if g.err != nil || !json.Valid(g.m.Data) {
						t.Errorf("got %+v", g)
					}
				case !errors.Is(g.err, c.want) && (g.err == nil || g.err.Error() != c.want.Error()):
					t.Errorf("got %v, want %v", g.err, c.want)
				}
			case <-time.After(soon):
				t.Fatal("nothing came")
			}
		})
	}
}

func TestAPullerThatIsStoppedEndsAtOnce(t *testing.T) {
	b := newBench(t)
	p, err := newPuller(b.nc, "file")
	if err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(100*time.Millisecond, p.stop)
	if _, err := p.next(); !errors.Is(err, errStopped) {
		t.Errorf("ended with %v", err)
	}
	p.stop()
	if _, err := p.next(); !errors.Is(err, errStopped) {
		t.Errorf("asked after that, it ended with %v", err)
	}
}
