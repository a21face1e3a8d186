package dispatch_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"treeline/internal/call"
	"treeline/internal/dispatch"
	"treeline/internal/dispatch/dispatchtest"
)

func TestATurnIsWatched(t *testing.T) {
	f := dispatchtest.New(t)
	f.Work(t)
	id, token := f.Turn(t, "k1", "write_file")
	_, other := f.Turn(t, "k1", "write_file")
	ctx, cancel := context.WithCancel(t.Context())
	notices, err := f.Dispatcher.Watch(ctx, token)
	if err != nil {
		t.Fatal(err)
	}
	for _, who := range []string{other, token} {
		if _, err := f.Dispatcher.Call(t.Context(), who, write("c1", "a"+who[:8]), time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	n := next(t, notices)
	var r call.Result
	if err := json.Unmarshal(n.Data, &r); err != nil || n.Kind != "result" || n.Call != "c1" || r.TurnID != id {
		t.Errorf("noticed %s of %s: %+v, %v", n.Kind, n.Call, r, err)
	}
	if err := f.Queue.PublishProgress(call.Key{Conversation: "k1", Turn: id, Call: "c2"}, []byte(`{"half":1}`)); err != nil {
		t.Fatal(err)
	}
	if n := next(t, notices); n.Kind != "progress" || n.Call != "c2" || string(n.Data) != `{"half":1}` {
		t.Errorf("noticed %+v", n)
	}
	cancel()
	select {
	case _, open := <-notices:
		if open {
			t.Error("noticed more")
		}
	case <-time.After(soon):
		t.Error("watching does not end")
	}
	if _, err := f.Dispatcher.Watch(t.Context(), "nobody"); !errors.Is(err, dispatch.ErrUnknownToken) {
		t.Errorf("nobody's token: %v", err)
	}
}

func TestAWatcherThatFallsFarBehindIsCutOff(t *testing.T) {
	f := dispatchtest.New(t)
	id, token := f.Turn(t, "k1", "write_file")
	notices, err := f.Dispatcher.Watch(t.Context(), token)
	if err != nil {
		t.Fatal(err)
	}
	for range 1500 {
		if err := f.Queue.PublishProgress(call.Key{Conversation: "k1", Turn: id, Call: "c1"}, []byte(`{}`)); err != nil {
			t.Fatal(err)
		}
	}
	deadline := time.After(soon)
	for n := 0; ; n++ {
		select {
		case _, open := <-notices:
			if !open {
				return
			}
		case <-deadline:
			t.Fatalf("%d notices came and no end", n)
		}
		time.Sleep(time.Millisecond)
	}
}
