package queue

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"treeline/internal/devenv/devtest"
	"treeline/internal/ledger"
)

func TestMain(m *testing.M) { devtest.Main(m) }

func TestAnEventIsDeliveredOnceAndThenGone(t *testing.T) {
	b := newBench(t)
	c := consume(t, b.Queue, 2, nil)
	b.publish(event("c1"))
	if d := c.next(soon); d.Event != event("c1") || !d.First {
		t.Errorf("delivered %+v", d)
	}
	stale := event("c2")
	stale.Fresh = false
	b.publish(stale)
	if d := c.next(soon); d.Event != stale || d.First {
		t.Errorf("delivered %+v, want it not as a first delivery", d)
	}
	b.drained()
	c.nothing(100 * time.Millisecond)
}

func TestLanesAreApart(t *testing.T) {
	b := newBench(t)
	c := consume(t, b.Queue, 1, nil)
	other := event("c1")
	other.Lane = "code"
	b.publish(other)
	b.publish(event("c2"))
	if d := c.next(soon); d.Event.Call != "c2" {
		t.Errorf("lane file was given %+v", d)
	}
	c.nothing(100 * time.Millisecond)
}

func TestWhatIsHeldForLongIsNotDeliveredAgain(t *testing.T) {
	b := newBench(t, func(c *Config) { c.AckWait = time.Second })
	hold := make(chan struct{})
	c := consume(t, b.Queue, 2, func(context.Context, Delivery) error { <-hold; return nil })
	b.publish(event("c1"))
	c.next(soon)
	c.nothing(4 * time.Second) // four times AckWait, and a slot is free
	close(hold)
	b.drained()
}

func TestWhatFailsComesAgainAndIsNoFirstDelivery(t *testing.T) {
	b := newBench(t, func(c *Config) { c.AckWait = 300 * time.Millisecond })
	failing := true
	c := consume(t, b.Queue, 1, func(context.Context, Delivery) error {
		if failing {
			failing = false
			return errors.New("not now")
		}
		return nil
	})
	b.publish(event("c1"))
	if d := c.next(soon); !d.First {
		t.Errorf("first delivered as %+v", d)
	}
	if d := c.next(soon); d.First || d.Event.Call != "c1" {
		t.Errorf("then delivered as %+v", d)
	}
	b.drained()
}

func TestNoMoreIsTakenThanCanStart(t *testing.T) {
	b := newBench(t)
	hold := make(chan struct{})
	busy := consume(t, b.Queue, 2, func(context.Context, Delivery) error { <-hold; return nil })
	for i := range 5 {
		b.publish(event(fmt.Sprintf("c%d", i)))
	}
	busy.next(soon)
	busy.next(soon)
	busy.nothing(200 * time.Millisecond)
	free := consume(t, b.connect(), 1, nil)
	for range 3 {
		free.next(soon) // at once, though the other has not acknowledged anything
	}
	close(hold)
	b.drained()
}

func TestStoppingLetsEndWhatIsInHandAndTakesNoMore(t *testing.T) {
	b := newBench(t)
	hold := make(chan struct{})
	var ended sync.Map
	c := consume(t, b.Queue, 1, func(_ context.Context, d Delivery) error { <-hold; ended.Store(d.Event.Call, true); return nil })
	b.publish(event("c1"))
	c.next(soon)
	b.publish(event("c2"))
	stopped := make(chan struct{})
	go func() { c.stop(); close(stopped) }()
	select {
	case <-stopped:
		t.Fatal("stopped with an event in hand")
	case <-time.After(200 * time.Millisecond):
	}
	close(hold)
	select {
	case <-stopped:
	case <-time.After(soon):
		t.Fatal("stopping hangs")
	}
	if _, done := ended.Load("c1"); !done {
		t.Error("what was in hand was not ended")
	}
	b.eventually("c2 alone is left", func() error {
		if n := b.stream(CallsStream).State.Msgs; n != 1 {
			return fmt.Errorf("%d events are", n)
		}
		return nil
	})
	if d := consume(t, b.Queue, 1, nil).next(soon); d.Event.Call != "c2" {
		t.Errorf("then delivered %+v", d)
	}
}

func TestStoppingWhileNothingComesIsQuick(t *testing.T) {
	b := newBench(t)
	c := consume(t, b.Queue, 4, nil)
	b.publish(event("c1"))
	c.next(soon)
	began := time.Now()
	c.stop()
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("stopping took %s", took)
	}
}

func TestKillingEndsTheContextOfWhatIsInHand(t *testing.T) {
	b := newBench(t, func(c *Config) { c.AckWait = 500 * time.Millisecond })
	c := consume(t, b.Queue, 1, func(ctx context.Context, _ Delivery) error { <-ctx.Done(); return ctx.Err() })
	b.publish(event("c1"))
	c.next(soon)
	c.kill()
	if d := consume(t, b.Queue, 1, nil).next(soon); d.Event.Call != "c1" || d.First {
		t.Errorf("another worker was given %+v", d)
	}
}

func TestMessagesThatAreNoEventsAreDropped(t *testing.T) {
	b := newBench(t)
	c := consume(t, b.Queue, 1, nil)
	for _, body := range []string{
		``, `{`, `null`, `[]`, `"x"`, `{}`, "\xff\x00", `{"conversationId":"k1","turnId":"t1"}`, `{"conversationId":"k1","turnId":"t1","callId":"a.b"}`,
		`{"conversationId":"k1","turnId":"t1","callId":""}`, `{"conversationId":1,"turnId":"t1","callId":"c"}`, `{"conversationId":"k1","turnId":"t1","callId":"c","seq":"x"}`,
	} {
		if _, err := b.js.Publish(t.Context(), "treeline.calls.file.k1", []byte(body)); err != nil {
			t.Fatal(err)
		}
	}
	b.publish(event("c1"))
	if d := c.next(soon); d.Event.Call != "c1" {
		t.Errorf("delivered %+v", d)
	}
	b.drained()
	c.nothing(50 * time.Millisecond)
}

// goesOn has events published until one comes: events are lost with a stream, and the sweeper publishes them again.
func (b *bench) goesOn(c *consumer, within time.Duration) {
	b.t.Helper()
	deadline := time.Now().Add(within)
	for i := 0; time.Now().Before(deadline); i++ {
		_ = b.PublishEvent(b.t.Context(), ledger.Event{Conversation: "k2", Turn: "t2", Call: fmt.Sprintf("c%d", i), Lane: "file"})
		select {
		case <-c.got:
			return
		case <-time.After(200 * time.Millisecond):
		}
	}
	b.t.Fatalf("nothing is consumed %s after the fault", within)
}

func TestConsumingGoesOnAfterFaultsOfTheQueue(t *testing.T) {
	for _, c := range []struct {
		name  string
		fault func(b *bench) error
	}{
		{"the server restarts", func(b *bench) error { return b.server.Restart() }},
		{"the server loses its disk", func(b *bench) error { return b.server.Wipe() }},
		{"the server is away for a while", func(b *bench) error {
			err := b.server.Stop()
			time.Sleep(2 * time.Second)
			return errors.Join(err, b.server.Start())
		}},
		{"the consumer is deleted", func(b *bench) error { return b.js.DeleteConsumer(b.t.Context(), CallsStream, "file") }},
		{"the calls' stream is deleted", func(b *bench) error { return b.js.DeleteStream(b.t.Context(), CallsStream) }},
		{"both streams are deleted", func(b *bench) error {
			return errors.Join(b.js.DeleteStream(b.t.Context(), CallsStream), b.js.DeleteStream(b.t.Context(), ResultsStream))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			worker := consume(t, b.Queue, 2, nil)
			b.publish(event("c1"))
			worker.next(soon)
			if err := c.fault(b); err != nil {
				t.Fatal(err)
			}
			b.goesOn(worker, soon)
			b.tell("c1", `{}`)
		})
	}
}

func TestAWipedServerHasItsResultsToldAgain(t *testing.T) {
	b := newBench(t)
	states, told := b.setUps(), b.tell("c1", `{}`)
	again := b.Again()
	if err := b.server.Wipe(); err != nil {
		t.Fatal(err)
	}
	afterLoss(t, states, told)
	select {
	case <-again:
	case <-time.After(soon):
		t.Error("who waits for a result was not woken")
	}
}

func TestARestartedServerKeepsEventsAndResults(t *testing.T) {
	b := newBench(t)
	b.publish(event("c1"))
	told := b.tell("c1", `{}`)
	if err := b.server.Restart(); err != nil {
		t.Fatal(err)
	}
	if again := b.tell("c1", `{}`); again != told {
		t.Errorf("told as %+v, and after the restart as %+v", told, again)
	}
	if d := consume(t, b.Queue, 1, nil).next(soon); d.Event.Call != "c1" {
		t.Errorf("delivered %+v", d)
	}
}
