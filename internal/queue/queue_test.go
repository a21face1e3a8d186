package queue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"

	"treeline/internal/call"
	"treeline/internal/ledger"
)

func TestSettingUpAgainLeavesEverythingAsItIs(t *testing.T) {
	b := newBench(t)
	b.publish(event("c1"))
	b.tell("c1", `{}`)
	before := [2]*jetstream.StreamInfo{b.stream(CallsStream), b.stream(ResultsStream)}
	for range 3 {
		if err := b.setUp(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	b.connect()
	after := [2]*jetstream.StreamInfo{b.stream(CallsStream), b.stream(ResultsStream)}
	for i := range before {
		if !reflect.DeepEqual(before[i].Config, after[i].Config) || !before[i].Created.Equal(after[i].Created) || after[i].State.Msgs != 1 {
			t.Errorf("the stream was %+v and is %+v", before[i], after[i])
		}
	}
}

func TestAnAddressThatIsNoneIsRefusedAtOnceAndNotShown(t *testing.T) {
	for _, address := range []string{"nats://u:hunter%zz2@localhost:4222", "u:hunter%zz2@localhost:4222", "nats://localhost:1,nats://u:hunter%zz2@localhost:4222"} {
		ctx, cancel := context.WithTimeout(t.Context(), soon)
		_, err := Connect(ctx, Options{URL: address}, DefaultConfig(), zerolog.Nop())
		if err == nil || errors.Is(err, context.DeadlineExceeded) || strings.Contains(err.Error(), "hunter") {
			t.Errorf("%v", err)
		}
		cancel()
	}
}

func TestConnectingEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := Connect(ctx, Options{URL: "nats://127.0.0.1:1"}, DefaultConfig(), zerolog.Nop()); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("connecting to nobody: %v", err)
	}
}

func TestClosingTwiceIsFineAndEndsWhatRunsBeside(t *testing.T) {
	b := newBench(t)
	if err := b.server.Stop(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { b.Close(); b.Close(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(soon):
		t.Fatal("closing hangs while the server is away")
	}
	if err := b.Healthy(); err == nil {
		t.Error("a closed queue is healthy")
	}
}

func TestAResultToldAgainIsInTheStreamOnce(t *testing.T) {
	b := newBench(t)
	first, again := b.tell("c1", `{"a":1}`), b.tell("c1", `{"a":1}`)
	if first != again || first.Seq != 1 || first.Key != key("c1") {
		t.Errorf("told as %+v and %+v, want the same", first, again)
	}
	if info := b.stream(ResultsStream); info.State.Msgs != 1 || !micro(info.Created).Equal(first.Stream) {
		t.Errorf("the stream made %s has %d results, want 1 in the one made %s", info.Created, info.State.Msgs, first.Stream)
	}
	if other := b.tell("c2", `{"a":1}`); other.Seq != 2 {
		t.Errorf("another call's result is %+v, want seq 2", other)
	}
}

func TestALargeResultIsToldShort(t *testing.T) {
	paths := make([]string, 1800)
	for i := range paths {
		paths[i] = fmt.Sprintf("%s%04d", strings.Repeat("<", 200), i)
	}
	large := strings.Repeat("x", 930_000)
	for _, c := range []struct {
		name    string
		result  call.Result
		missing []string
	}{
		{"just within", call.Result{Content: []call.Content{call.Text(strings.Repeat("x", 890_000))}, Data: json.RawMessage("{}"), ReplayArguments: json.RawMessage("{}")}, nil},
		{"large content", call.Result{Content: []call.Content{call.Text(large)}, Data: json.RawMessage("{}")}, []string{"content", "data", "replayArguments"}},
		{"large data", call.Result{Data: json.RawMessage(`"` + large + `"`)}, []string{"content", "data", "replayArguments"}},
		{"many paths", call.Result{Changes: call.Changes{Created: paths}}, []string{"content", "data", "replayArguments", "changes"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.result.ResultRef = "tl-x"
			whole, err := json.Marshal(c.result)
			if err != nil {
				t.Fatal(err)
			}
			body, err := toldBody(whole)
			if err != nil || len(body) > 921_600 {
				t.Fatalf("%d bytes are told, %v", len(body), err)
			}
			var all, told map[string]json.RawMessage
			if err := errors.Join(json.Unmarshal(whole, &all), json.Unmarshal(body, &told)); err != nil {
				t.Fatal(err)
			}
			for _, name := range c.missing {
				delete(all, name)
			}
			if !reflect.DeepEqual(all, told) {
				t.Errorf("told fields %d, want %d: all but %v", len(told), len(all), c.missing)
			}
		})
	}
}

func TestPurgingTakesTheResultsOfOneConversationAlone(t *testing.T) {
	b := newBench(t)
	for _, k := range []call.Key{key("c1"), key("c2"), {Conversation: "k1x", Turn: "t1", Call: "c1"}, {Conversation: "k", Turn: "t1", Call: "c1"}} {
		if _, err := b.PublishResult(t.Context(), k, []byte(`{}`)); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 { // purging twice is fine
		if err := b.PurgeConversation(t.Context(), "k1"); err != nil {
			t.Fatal(err)
		}
	}
	want := map[string]uint64{"treeline.results.k1x.t1.c1": 1, "treeline.results.k.t1.c1": 1}
	if got := b.stream(ResultsStream).State.Subjects; !reflect.DeepEqual(got, want) {
		t.Errorf("results are left: %v, want %v", got, want)
	}
}

func TestAWaiterHearsItsOwnCallAlone(t *testing.T) {
	b := newBench(t)
	told, sub, err := b.AwaitResult(key("c1"))
	if err != nil {
		t.Fatal(err)
	}
	b.tell("c2", `{"no":1}`)
	b.tell("c1", `{"yes":1}`)
	select {
	case body := <-told:
		if string(body) != `{"yes":1}` {
			t.Errorf("heard %s", body)
		}
	case <-time.After(soon):
		t.Fatal("nothing was heard")
	}
	sub.Stop()
	sub.Stop()
}

func TestATurnIsWatchedWithItsProgress(t *testing.T) {
	b := newBench(t)
	heard := make(chan Told, 10)
	stop, err := b.WatchTurn("k1", "t1", func(m Told) { heard <- m })
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	if err := errors.Join(b.PublishProgress(call.Key{Conversation: "k1", Turn: "t2", Call: "c1"}, []byte("no")), b.PublishProgress(key("c1"), []byte("half"))); err != nil {
		t.Fatal(err)
	}
	b.tell("c1", "whole")
	got := map[string]Told{}
	for range 2 {
		select {
		case m := <-heard:
			got[string(m.Data)] = m
		case <-time.After(soon):
			t.Fatalf("heard only %v", got)
		}
	}
	if half, whole := got["half"], got["whole"]; half.Result || half.Call != "c1" || !whole.Result || whole.Call != "c1" {
		t.Errorf("heard %+v", got)
	}
}

func TestCancellingIsPushed(t *testing.T) {
	b := newBench(t)
	heard := make(chan call.Key, 10)
	stop, err := b.OnCancel(func(k call.Key) { heard <- k })
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	if err := b.PublishCancel(key("c1")); err != nil {
		t.Fatal(err)
	}
	select {
	case k := <-heard:
		if k != key("c1") {
			t.Errorf("heard %v", k)
		}
	case <-time.After(soon):
		t.Fatal("nothing was heard")
	}
}

// setUps notes each call of an OnSetUp hook.
func (b *bench) setUps() <-chan StreamState {
	b.t.Helper()
	states := make(chan StreamState, 100)
	err := b.OnSetUp(b.t.Context(), func(_ context.Context, s StreamState) error { states <- s; return nil })
	if err != nil {
		b.t.Fatal(err)
	}
	<-states // at once
	return states
}

// afterLoss waits for the hook's call with a stream that was made after the one that told.
func afterLoss(t *testing.T, states <-chan StreamState, told ledger.Telling) {
	t.Helper()
	deadline := time.After(soon)
	for {
		select {
		case s := <-states:
			if s.Created.After(told.Stream) {
				return
			}
		case <-deadline:
			t.Fatal("nobody was told that the results were lost")
		}
	}
}

func TestAHookThatFailsIsTriedAgain(t *testing.T) {
	b := newBench(t)
	calls := 0
	err := b.OnSetUp(t.Context(), func(context.Context, StreamState) error {
		if calls++; calls < 3 {
			return errors.New("the database is away")
		}
		return nil
	})
	if err != nil || calls != 3 {
		t.Errorf("called %d times, %v; want 3 and no error", calls, err)
	}
}

func TestResultsThatAreLostWithoutAReconnectAreNoticed(t *testing.T) {
	b := newBench(t)
	states, told := b.setUps(), b.tell("c1", `{}`)
	again := b.Again()
	if err := b.js.DeleteStream(t.Context(), ResultsStream); err != nil {
		t.Fatal(err)
	}
	afterLoss(t, states, told)
	select {
	case <-again:
	case <-time.After(soon):
		t.Error("who waits for a result was not woken")
	}
	if now := b.tell("c1", `{}`); now.Seq != 1 || !now.Stream.After(told.Stream) {
		t.Errorf("told again as %+v", now)
	}
}

func TestResultsThatAnotherSetUpAnewAreNoticed(t *testing.T) {
	b := newBench(t)
	other := b.connect()
	states, told := b.setUps(), b.tell("c1", `{}`)
	if err := other.js.DeleteStream(t.Context(), ResultsStream); err != nil {
		t.Fatal(err)
	}
	if err := other.setUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	afterLoss(t, states, told)
}
