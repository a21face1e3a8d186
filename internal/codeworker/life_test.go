package codeworker

import (
	"encoding/json"
	"maps"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"treeline/internal/call"
	"treeline/internal/ledger"
	"treeline/internal/store/db"
	"treeline/schemas"
)

// sleeps is a program that writes a file, says so, and takes its time.
func sleeps(seconds string) string {
	return "open('workspace/a','w').write('1')\nprint('written')\nimport time\ntime.sleep(" + seconds + ")"
}

// written waits until the program of a call has said so, or fails.
func (b *bench) written(k call.Key) (wait func()) {
	b.t.Helper()
	said := make(chan struct{}, 100)
	sub, err := b.queue.Conn().Subscribe("treeline.progress."+k.String(), func(m *nats.Msg) {
		if strings.Contains(string(m.Data), "written") {
			said <- struct{}{}
		}
	})
	if err != nil {
		b.t.Fatal(err)
	}
	if err := b.queue.Conn().Flush(); err != nil {
		b.t.Fatal(err)
	}
	return func() {
		b.t.Helper()
		defer func() { _ = sub.Unsubscribe() }()
		select {
		case <-said:
		case <-time.After(20 * time.Second):
			b.t.Fatal("the program has not begun")
		}
	}
}

// running sends a program and waits until it has written.
func (b *bench) running(code string) call.Key {
	b.t.Helper()
	next := call.Key{Conversation: b.turn.Conversation, Turn: b.turn.ID, Call: "*"}
	wait := b.written(next)
	k := b.send(code, nil)
	wait()
	return k
}

func TestTheLeaseIsKeptWhileTheCodeRuns(t *testing.T) {
	t.Parallel()
	b := newBench(t, lease(time.Second))
	b.start(NoInputs{}, testConfig())
	k := b.running(sleeps("3.5"))
	sweeper := ledger.NewSweeper(b.ledger, b.queue, b.teller, b.log)
	for b.row(k).State == string(ledger.Running) {
		if err := sweeper.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(50 * time.Millisecond)
	}
	got := b.answer(k)
	if got.Status != call.OK || got.Attempt != 1 {
		t.Errorf("%s %s, attempt %d\n%s", got.Status, got.Code, got.Attempt, got.text)
	}
	if files := b.files(); !maps.Equal(files, map[string]string{"a": "1"}) {
		t.Errorf("files: %q", files)
	}
}

// takeOver gives the call to somebody else, as the sweeper and another worker would.
func (b *bench) takeOver(k call.Key) ledger.Work {
	b.t.Helper()
	c := b.row(k)
	if _, err := b.ledger.Queries().TakeBack(b.t.Context(), db.TakeBackParams{TurnID: k.Turn, CallID: k.Call, Seen: *c.Token}); err != nil {
		b.t.Fatal(err)
	}
	w, _, err := b.ledger.Look(b.t.Context(), ledger.Event{Conversation: k.Conversation, Turn: k.Turn, Call: k.Call}, false)
	if err != nil {
		b.t.Fatal(err)
	}
	if w, err = b.ledger.Claim(b.t.Context(), w); err != nil {
		b.t.Fatal(err)
	}
	return w
}

func TestARunThatAnotherWorkerTookOverHasNoEffect(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, sleep string }{{"found by a heartbeat", "30"}, {"found by the fence", "0.2"}} {
		t.Run(c.name, func(t *testing.T) {
			term := 900 * time.Millisecond
			if c.sleep == "0.2" {
				term = 30 * time.Second
			}
			b := newBench(t, lease(term))
			stop, _ := b.start(NoInputs{}, testConfig())
			k := b.running(sleeps(c.sleep))
			if _, err := b.ledger.Pool().Exec(t.Context(), "UPDATE calls SET lease_until = clock_timestamp() - interval '1 s' WHERE call_id = $1", k.Call); err != nil {
				t.Fatal(err)
			}
			other := b.takeOver(k)
			began := time.Now()
			stop()
			if took := time.Since(began); took > 5*time.Second {
				t.Errorf("the run went on for %s", took)
			}
			if row := b.row(k); row.State != string(ledger.Running) || row.Attempt != 2 || row.Result != nil {
				t.Errorf("state %s, attempt %d, result %s", row.State, row.Attempt, row.Result)
			}
			if files := b.files(); len(files) != 0 {
				t.Errorf("files: %q", files)
			}
			if _, err := b.ledger.Finish(t.Context(), other, ledger.FailedOutcome(call.Internal, "the other's")); err != nil {
				t.Errorf("the other worker cannot finish: %v", err)
			}
		})
	}
}

func TestARunningCallIsCancelledWithinASecond(t *testing.T) {
	b := newBench(t)
	b.start(NoInputs{}, testConfig())
	k := b.running(sleeps("60"))
	waiting := b.send("print('next')", nil)
	began := time.Now()
	c, err := b.ledger.Cancel(t.Context(), k.Conversation, k.Turn, k.Call)
	if err != nil || !c.Running {
		t.Fatalf("cancel: %+v, %v", c, err)
	}
	if err := b.queue.PublishCancel(k); err != nil {
		t.Fatal(err)
	}
	got := b.answer(k)
	if took := time.Since(began); took > time.Second {
		t.Errorf("it took %s", took)
	}
	if got.Status != call.Failed || got.Code != call.Cancelled || !got.Changes.Empty() {
		t.Errorf("%s %s %+v", got.Status, got.Code, got.Changes)
	}
	if next := b.answer(waiting); next.data.Stdout != "next\n" {
		t.Errorf("the next call: %s", next.text)
	}
	if files := b.files(); len(files) != 0 {
		t.Errorf("files: %q", files)
	}
}

func TestAHeartbeatBringsACancellingWhosePushWasLost(t *testing.T) {
	t.Parallel()
	b := newBench(t, lease(900*time.Millisecond))
	b.start(NoInputs{}, testConfig())
	k := b.running(sleeps("60"))
	if _, err := b.ledger.Cancel(t.Context(), k.Conversation, k.Turn, k.Call); err != nil {
		t.Fatal(err)
	}
	if got := b.answer(k); got.Code != call.Cancelled {
		t.Errorf("%s %s", got.Status, got.Code)
	}
}

func TestACancellingSurvivesAHandBack(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	_, kill := b.start(NoInputs{}, testConfig())
	k := b.running(sleeps("60"))
	kill()
	if _, err := b.ledger.Pool().Exec(t.Context(), "UPDATE calls SET cancel_requested = true WHERE call_id = $1", k.Call); err != nil {
		t.Fatal(err)
	}
	b.start(NoInputs{}, testConfig())
	began := time.Now()
	if got := b.answer(k); got.Code != call.Cancelled || time.Since(began) > 5*time.Second {
		t.Errorf("%s %s after %s", got.Status, got.Code, time.Since(began))
	}
}

func TestAPushThatTheLedgerKnowsNothingOfStopsNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.start(NoInputs{}, testConfig())
	k := b.running(sleeps("0.5"))
	if err := b.queue.PublishCancel(k); err != nil {
		t.Fatal(err)
	}
	if got := b.answer(k); got.Status != call.OK {
		t.Errorf("%s %s", got.Status, got.Code)
	}
}

func TestDeletingTheConversationStopsTheRun(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	stop, _ := b.start(NoInputs{}, testConfig())
	k := b.running(sleeps("60"))
	if _, err := b.ledger.Delete(t.Context(), k.Conversation); err != nil {
		t.Fatal(err)
	}
	if err := b.queue.PublishCancel(k); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	stop()
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("the run went on for %s", took)
	}
	if row := b.row(k); row.State != string(ledger.Done) || row.Code != string(call.ConversationDeleted) {
		t.Errorf("state %s, code %s", row.State, row.Code)
	}
	if files := b.files(); len(files) != 0 {
		t.Errorf("files: %q", files)
	}
}

func TestAWorkerThatStopsLetsItsRunsEnd(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	stop, _ := b.start(NoInputs{}, testConfig())
	k := b.running(sleeps("1"))
	later := b.send("print(1)", nil)
	stop()
	if row := b.row(k); row.State != string(ledger.Done) || row.Code != "" {
		t.Errorf("state %s, code %s", row.State, row.Code)
	}
	if row := b.row(later); row.State != string(ledger.Released) {
		t.Errorf("the next call is %s, want it left for another worker", row.State)
	}
}

func TestAWorkerWhoseGraceIsOverHandsItsRunsBack(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	_, kill := b.start(NoInputs{}, testConfig())
	k := b.running(sleeps("3"))
	began := time.Now()
	kill()
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("stopping took %s", took)
	}
	if row := b.row(k); row.State != string(ledger.Released) || row.Attempt != 0 || row.Token != nil {
		t.Errorf("state %s, attempt %d", row.State, row.Attempt)
	}
	if files := b.files(); len(files) != 0 {
		t.Errorf("files: %q", files)
	}
	b.start(NoInputs{}, testConfig())
	if got := b.answer(k); got.Status != call.OK || got.Attempt != 1 || time.Since(began) > 10*time.Second {
		t.Errorf("%s %s, attempt %d after %s", got.Status, got.Code, got.Attempt, time.Since(began))
	}
}

func TestRunsOfOneConversationWaitAndOthersDoNot(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.start(NoInputs{}, testConfig())
	slow := b.running(sleeps("2"))
	queued := b.send("print(open('workspace/a').read())", nil)
	other := *b
	other.turn.ID, other.turn.Conversation = "t2", "k2"
	if _, err := b.ledger.PutConversation(t.Context(), "k2"); err != nil {
		t.Fatal(err)
	}
	if err := b.ledger.OpenTurn(t.Context(), other.turn, [32]byte{1}); err != nil {
		t.Fatal(err)
	}
	if got := other.do("print('other')", nil); got.data.Stdout != "other\n" || b.row(slow).State != string(ledger.Running) {
		t.Errorf("the other conversation's call: %s; the slow one is %s", got.text, b.row(slow).State)
	}
	if got := b.answer(queued); got.data.Stdout != "1\n" {
		t.Errorf("the queued call: %s", got.text)
	}
}

// heard are the progress messages of one call.
type heard struct {
	mu   sync.Mutex
	msgs []progress
	size int
}

func (b *bench) listen() *heard {
	b.t.Helper()
	h := &heard{}
	_, err := b.queue.Conn().Subscribe("treeline.progress.>", func(m *nats.Msg) {
		var p progress
		if err := json.Unmarshal(m.Data, &p); err != nil {
			b.t.Error(err)
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		h.msgs, h.size = append(h.msgs, p), h.size+len(m.Data)
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return h
}

func TestOutputIsToldAsItComes(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.start(NoInputs{}, testConfig())
	h := b.listen()
	k := b.send("import sys,time\nprint('one')\ntime.sleep(.3)\nprint('two',file=sys.stderr)\ntime.sleep(.3)\nprint('three')", nil)
	b.answer(k)
	if err := b.queue.Conn().Flush(); err != nil {
		t.Fatal(err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	type line struct{ state, stream, text string }
	var got []line
	for i, m := range h.msgs {
		if m.CallID != k.Call || m.TurnID != k.Turn || m.ConversationID != k.Conversation || m.Tool != "run_code" || m.Attempt != 1 ||
			m.Seq != 1 || m.N != int64(i+1) || m.Skipped != 0 || m.At.IsZero() {
			t.Errorf("message %d: %+v", i, m)
		}
		got = append(got, line{m.State, string(m.Stream), m.Text})
	}
	want := []line{{"running", "", ""}, {"running", "stdout", "one\n"}, {"running", "stderr", "two\n"}, {"running", "stdout", "three\n"}}
	if len(got) != len(want) {
		t.Fatalf("got %+v, want %+v", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("message %d: %+v, want %+v", i, got[i], want[i])
		}
	}
}

func TestAFloodOfOutputNeitherFloodsNorFillsMemory(t *testing.T) {
	b := newBench(t)
	b.start(NoInputs{}, testConfig())
	h := b.listen()
	before := residentBytes(t)
	k := b.send("import sys\nprint('first')\nb='x'*(1<<20)\nfor i in range(400): sys.stdout.write(b)\nprint(); print('the end')", nil)
	var most int64
	for b.row(k).State != string(ledger.Done) {
		most = max(most, residentBytes(t)-before)
		time.Sleep(10 * time.Millisecond)
	}
	got := b.answer(k)
	if most > 100<<20 {
		t.Errorf("the worker took %d MiB more", most>>20)
	}
	if err := b.queue.Conn().Flush(); err != nil {
		t.Fatal(err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	var told, skipped int64
	for _, m := range h.msgs {
		told, skipped = told+int64(len(m.Text)), skipped+m.Skipped
	}
	const printed = int64(len("first\n")) + 400<<20 + int64(len("\nthe end\n"))
	if told+skipped != printed {
		t.Errorf("told %d and skipped %d bytes, together not the %d printed", told, skipped, printed)
	}
	if rate := float64(told) / max(1, got.FinishedAt.Sub(got.StartedAt).Seconds()); rate > 2.5*tellRate {
		t.Errorf("told %.0f bytes a second", rate)
	}
	for _, s := range []string{got.data.Stdout, got.stored.Stdout, got.text, got.whole} {
		if !strings.Contains(s, "first\n") || !strings.Contains(s, "the end") || !strings.Contains(s, "[cut here: ") {
			t.Errorf("it lacks its head or tail: %.80q", s)
		}
	}
	if n := len(got.stored.Stdout); n < 1<<20 || n > 1<<20+200 {
		t.Errorf("%d bytes are stored, want 1 MiB and a notice", n)
	}
	if n := len([]rune(got.text)); n > 8_400 {
		t.Errorf("the text has %d characters", n)
	}
}

func TestACallThatNobodyHandlesFailsAtOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.start(NoInputs{}, testConfig())
	w, e := b.accept("run_cobol", "code", map[string]any{"code": "STOP RUN."})
	began := time.Now()
	if err := b.queue.PublishEvent(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	c := b.until(w.Key, ledger.Done)
	if took := time.Since(began); c.Code != string(call.Internal) || c.Attempt != 1 || took > 3*time.Second {
		t.Errorf("code %s, attempt %d, after %s", c.Code, c.Attempt, took)
	}
	if got := b.do("print('next')", nil); got.data.Stdout != "next\n" {
		t.Errorf("the next call: %s", got.text)
	}
}

func TestProgressIsAsItsSchemaSays(t *testing.T) {
	raw, err := schemas.Files.ReadFile("messages/progress.json")
	if err != nil {
		t.Fatal(err)
	}
	var schema struct {
		Properties map[string]any `json:"properties"`
	}
	if err := json.Unmarshal(raw, &schema); err != nil {
		t.Fatal(err)
	}
	for field := range reflect.TypeFor[progress]().Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if schema.Properties[name] == nil {
			t.Errorf("the schema knows no %q", name)
		}
	}
}
