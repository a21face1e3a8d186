package queue

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"

	"treeline/internal/call"
	"treeline/internal/devenv"
	"treeline/internal/devenv/devtest"
	"treeline/internal/ledger"
)

// soon bounds what is to happen without a fault; the machine may be busy.
const soon = 20 * time.Second

// bench is a queue on a server of the test's own.
type bench struct {
	*Queue
	t      *testing.T
	server *devenv.NATS
}

func newBench(t *testing.T, change ...func(*Config)) *bench {
	t.Helper()
	b := &bench{t: t, server: devtest.NATS(t)}
	b.Queue = b.connect(change...)
	return b
}

func (b *bench) connect(change ...func(*Config)) *Queue {
	b.t.Helper()
	cfg := DefaultConfig()
	cfg.WatchEvery = 200 * time.Millisecond
	for _, c := range change {
		c(&cfg)
	}
	q, err := Connect(context.Background(), Options{URL: b.server.URL(), Name: "test"}, cfg, zerolog.Nop())
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(q.Close)
	return q
}

func event(call string) ledger.Event {
	return ledger.Event{Conversation: "k1", Turn: "t1", Call: call, Lane: "file", Seq: 1, Generation: 1, Fresh: true}
}

func key(id string) call.Key { return call.Key{Conversation: "k1", Turn: "t1", Call: id} }

// publish tries until the stream has it: after a fault it may take a moment.
func (b *bench) publish(e ledger.Event) {
	b.t.Helper()
	b.eventually("publish "+e.Call, func() error { return b.PublishEvent(b.t.Context(), e) })
}

func (b *bench) tell(id, body string) ledger.Telling {
	b.t.Helper()
	var told ledger.Telling
	b.eventually("tell "+id, func() (err error) {
		told, err = b.PublishResult(b.t.Context(), key(id), []byte(body))
		return err
	})
	return told
}

func (b *bench) eventually(what string, fn func() error) {
	b.t.Helper()
	var err error
	for deadline := time.Now().Add(soon); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if err = fn(); err == nil {
			return
		}
	}
	b.t.Fatalf("%s: %v", what, err)
}

// consumer is a worker that notes what it is given.
type consumer struct {
	t    *testing.T
	got  chan Delivery
	stop func() // and wait
	kill func() // and wait
}

// consume takes events of lane file until the test ends. Each is noted, then handled.
func consume(t *testing.T, q *Queue, slots int, handle Handler) *consumer {
	t.Helper()
	c := &consumer{t: t, got: make(chan Delivery, 1000)}
	ctx, cancel := context.WithCancel(context.Background())
	stopping := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		err := q.Consume(ctx, stopping, "file", slots, func(ctx context.Context, d Delivery) error {
			c.got <- d
			if handle == nil {
				return nil
			}
			return handle(ctx, d)
		})
		if err != nil {
			t.Errorf("consume: %v", err)
		}
	})
	once := sync.OnceFunc(func() { close(stopping) })
	c.stop = func() { once(); running.Wait() }
	c.kill = func() { cancel(); running.Wait() }
	t.Cleanup(c.kill)
	return c
}

func (c *consumer) next(within time.Duration) Delivery {
	c.t.Helper()
	select {
	case d := <-c.got:
		return d
	case <-time.After(within):
		c.t.Fatalf("no event within %s", within)
		return Delivery{}
	}
}

func (c *consumer) nothing(quiet time.Duration) {
	c.t.Helper()
	select {
	case d := <-c.got:
		c.t.Fatalf("an event that was not to come: %+v", d)
	case <-time.After(quiet):
	}
}

func (b *bench) stream(name string) *jetstream.StreamInfo {
	b.t.Helper()
	s, err := b.js.Stream(b.t.Context(), name)
	if err != nil {
		b.t.Fatal(err)
	}
	info, err := s.Info(b.t.Context(), jetstream.WithSubjectFilter(">"))
	if err != nil {
		b.t.Fatal(err)
	}
	return info
}

// drained waits until nothing is left to be done.
func (b *bench) drained() {
	b.t.Helper()
	b.eventually("the stream is empty", func() error {
		if n := b.stream(CallsStream).State.Msgs; n != 0 {
			return fmt.Errorf("%d events are left", n)
		}
		return nil
	})
}
