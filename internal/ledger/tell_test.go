package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"

	"treeline/internal/call"
	"treeline/internal/ledger"
	"treeline/internal/queue"
	"treeline/internal/store/db"
)

// finished makes a call that is done and not told.
func (s *swept) finished(id string) ledger.Finished {
	s.t.Helper()
	s.accept(s.turn, id)
	f, err := s.Finish(s.t.Context(), s.claim(id), ledger.Outcome{Status: call.OK, Content: []call.Content{call.Text("of " + id)}})
	if err != nil {
		s.t.Fatal(err)
	}
	return f
}

func (s *swept) isTold(id string) func() bool {
	return func() bool { return s.row(id).ToldSeq != nil }
}

func TestAnUntoldResultIsToldOnceAndThatIsKept(t *testing.T) {
	s := newSwept(t)
	f := s.finished("c1")
	s.sweep()
	quiet(t, s.results) // its worker is about to
	s.due()
	s.sweep()
	if r := next(t, s.results); r.CallID != "c1" || r.Content[0].Text != "of c1" || r.ResultRef != f.Result.ResultRef {
		t.Errorf("told %+v", r)
	}
	s.until("the telling is kept", s.isTold("c1"))
	s.due()
	s.sweep()
	quiet(t, s.results)
}

// Who was cut off while the stream was made anew may note a telling late: what it told is gone with the old one.
func TestATellingIntoAStreamThatIsGoneIsNotNoted(t *testing.T) {
	s := newSwept(t)
	s.finished("c1")
	old, present := time.Unix(1000, 0), time.Unix(2000, 0)
	note := func(stream time.Time) {
		t.Helper()
		err := s.Queries().MarkTold(t.Context(), db.MarkToldParams{Turns: []string{s.turn.ID}, Calls: []string{"c1"},
			Streams: []time.Time{stream}, Seqs: []int64{1}})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := s.sweeper.RetellLost(t.Context(), present, 10); err != nil {
		t.Fatal(err)
	}
	if note(old); s.isTold("c1")() {
		t.Error("noted as told, in a stream that is gone")
	}
	if note(present); !s.isTold("c1")() {
		t.Error("not noted, though the stream has it")
	}
	if err := s.sweeper.RetellLost(t.Context(), old, 10); err != nil { // a backup was put in its place
		t.Fatal(err)
	}
	if s.isTold("c1")() {
		t.Error("still told, though the stream that held it is gone")
	}
	if note(old); !s.isTold("c1")() {
		t.Error("not noted, though the stream has it")
	}
}

func TestResultsThatAStreamLostAreToldAgain(t *testing.T) {
	s := newSwept(t)
	err := s.queue.OnSetUp(t.Context(), func(ctx context.Context, st queue.StreamState) error {
		return s.sweeper.RetellLost(ctx, st.Created, st.LastSeq)
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"c1", "c2", "old"} {
		s.finished(id)
	}
	s.due()
	s.sweep()
	for _, id := range []string{"c1", "c2", "old"} {
		next(t, s.results)
		s.until("the telling is kept", s.isTold(id))
	}
	s.exec(`UPDATE calls SET finished_at = finished_at - interval '25 hours' WHERE call_id = 'old'`) // longer ago than results are kept
	if err := s.server.Restart(); err != nil {
		t.Fatal(err)
	}
	s.until("the queue is back", func() bool { return s.queue.Healthy() == nil })
	time.Sleep(200 * time.Millisecond)
	s.sweep()
	quiet(t, s.results) // nothing was lost
	if err := s.server.Wipe(); err != nil {
		t.Fatal(err)
	}
	s.until("the loss is noticed", func() bool { return !s.isTold("c1")() && !s.isTold("c2")() })
	got := map[string]bool{}
	s.until("both are told again", func() bool {
		s.sweep()
		for {
			select {
			case r := <-s.results:
				got[r.CallID] = true
			default:
				return got["c1"] && got["c2"]
			}
		}
	})
	if got["old"] || !s.isTold("old")() {
		t.Error("a result of more than a day ago is told again")
	}
}

func TestWhatIsPastTheEndOfTheStreamWasLost(t *testing.T) {
	s := newSwept(t)
	s.finished("c1")
	s.finished("c2")
	s.due()
	s.sweep()
	s.until("kept", func() bool { return s.isTold("c1")() && s.isTold("c2")() })
	row := s.row("c1")
	if err := s.sweeper.RetellLost(t.Context(), *row.ToldStream, 1); err != nil {
		t.Fatal(err)
	}
	first, second := s.row("c1"), s.row("c2")
	lost := 0
	for _, c := range []db.Call{first, second} {
		if (c.ToldSeq == nil) != (c.ToldSeq == nil || *c.ToldSeq > 1) {
			t.Errorf("%s was told as %v", c.CallID, c.ToldSeq)
		}
		if c.ToldSeq == nil {
			lost++
		}
	}
	if lost != 1 {
		t.Errorf("%d results are to be told again, want the one past seq 1", lost)
	}
}

func (s *swept) inStream() []string {
	s.t.Helper()
	js, err := jetstream.New(s.queue.Conn())
	if err != nil {
		s.t.Fatal(err)
	}
	stream, err := js.Stream(s.t.Context(), queue.ResultsStream)
	if err != nil {
		s.t.Fatal(err)
	}
	info, err := stream.Info(s.t.Context(), jetstream.WithSubjectFilter(">"))
	if err != nil {
		s.t.Fatal(err)
	}
	var subjects []string
	for subject := range info.State.Subjects {
		subjects = append(subjects, subject)
	}
	return subjects
}

func TestADeletionIsPurgedAndThenItsUnfinishedCallsAreTold(t *testing.T) {
	s := newSwept(t)
	s.finished("c1")
	s.due()
	s.sweep()
	next(t, s.results)
	s.accept(s.turn, "c2", "c3")
	running := s.claim("c2")
	d, err := s.Delete(t.Context(), "k1")
	if err != nil || len(d.Ended) != 2 {
		t.Fatalf("ended %v, %v", d.Ended, err)
	}
	if _, err := s.Finish(t.Context(), running, ledger.Outcome{Status: call.OK}); !errors.Is(err, ledger.ErrFenced) {
		t.Errorf("the run that was in progress finishes: %v", err)
	}
	if _, err := s.Heartbeat(t.Context(), running); !errors.Is(err, ledger.ErrFenced) {
		t.Errorf("the run that was in progress keeps its lease: %v", err)
	}
	s.due()
	s.sweep()
	got := map[string]call.Result{}
	for got["c2"].CallID == "" || got["c3"].CallID == "" { // c1 may be told more than once
		r := next(t, s.results)
		got[r.CallID] = r
	}
	for _, id := range []string{"c2", "c3"} {
		if r := got[id]; r.Code != call.ConversationDeleted || r.Status != call.Refused || len(r.Content) != 1 {
			t.Errorf("%s is told as %+v", id, r)
		}
	}
	for _, subject := range s.inStream() {
		if subject == "treeline.results.k1.t1.c1" {
			t.Error("the result of before the deletion is still in the stream")
		}
	}
	if due, err := s.Queries().PurgesDue(t.Context(), 10); err != nil || len(due) != 0 {
		t.Errorf("purges are due: %v, %v", due, err)
	}
}

func TestManyTellingsWithoutAQueueNeitherPileUpNorAreLost(t *testing.T) {
	s := newSwept(t)
	if err := s.server.Stop(); err != nil {
		t.Fatal(err)
	}
	teller := ledger.NewTeller(s.Ledger, s.queue, zerolog.Nop())
	began := time.Now()
	for i := range 5000 {
		teller.TellSoon(t.Context(), s.key(fmt.Sprintf("c%d", i)), []byte(`{}`))
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("the callers waited %s", took)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	began = time.Now()
	if err := teller.Run(ctx); err != nil {
		t.Error(err)
	}
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("the end took %s", took)
	}
}
