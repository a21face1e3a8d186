package devenv_test

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"treeline/internal/devenv/devtest"
)

// An orchestrator reads results and makes calls; it can neither read events nor forge events, results and cancelling.
func TestAnOrchestratorCanNeitherReadNorForgeWhatTheFleetTellsItself(t *testing.T) {
	server := devtest.NATS(t)
	fleet, err := nats.Connect(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer fleet.Close()
	denied := make(chan string, 20)
	orchestrator, err := nats.Connect(server.OrchestratorURL(), nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
		denied <- err.Error()
	}))
	if err != nil {
		t.Fatal(err)
	}
	defer orchestrator.Close()

	got := make(chan string, 20)
	if _, err := fleet.Subscribe("treeline.>", func(m *nats.Msg) { got <- m.Subject }); err != nil {
		t.Fatal(err)
	}
	if err := fleet.Flush(); err != nil {
		t.Fatal(err)
	}
	for _, subject := range []string{"treeline.results.k.t.c", "treeline.calls.file.k", "treeline.progress.k.t.c", "treeline.cancel.k.t.c",
		"$JS.API.STREAM.PURGE.TREELINE_RESULTS", "$JS.API.STREAM.DELETE.TREELINE_CALLS", "$JS.API.CONSUMER.MSG.NEXT.TREELINE_CALLS.file"} {
		if err := orchestrator.Publish(subject, []byte("{}")); err != nil {
			t.Fatal(err)
		}
		expectDenied(t, denied, subject)
	}
	for _, subject := range []string{"treeline.calls.>", "treeline.cancel.>", "treeline.>", ">", "_TREELINE_INBOX.>", "$JS.EVENT.>"} {
		if _, err := orchestrator.SubscribeSync(subject); err != nil {
			t.Fatal(err)
		}
		_ = orchestrator.Flush()
		expectDenied(t, denied, subject)
	}
	if err := orchestrator.Publish("treeline.call", []byte("{}")); err != nil {
		t.Fatal(err)
	}
	select {
	case subject := <-got:
		if subject != "treeline.call" {
			t.Errorf("the fleet got %s", subject)
		}
	case <-time.After(5 * time.Second):
		t.Error("a call did not arrive")
	}

	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	own, err := jetstream.New(fleet)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := own.CreateStream(ctx, jetstream.StreamConfig{Name: "TREELINE_RESULTS", Subjects: []string{"treeline.results.>"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := own.Publish(ctx, "treeline.results.k.t.c", []byte("the result")); err != nil {
		t.Fatal(err)
	}
	js, err := jetstream.New(orchestrator)
	if err != nil {
		t.Fatal(err)
	}
	c, err := js.CreateOrUpdateConsumer(ctx, "TREELINE_RESULTS", jetstream.ConsumerConfig{Durable: "orchestrator", AckPolicy: jetstream.AckExplicitPolicy})
	if err != nil {
		t.Fatal(err)
	}
	m, err := c.Next()
	if err != nil || string(m.Data()) != "the result" {
		t.Fatalf("the orchestrator read %v, %v", m, err)
	}
	if err := m.DoubleAck(ctx); err != nil {
		t.Errorf("acknowledge: %v", err)
	}
}

func expectDenied(t *testing.T, denied <-chan string, subject string) {
	t.Helper()
	select {
	case <-denied:
	case <-time.After(5 * time.Second):
		t.Errorf("%s was not denied", subject)
	}
}
