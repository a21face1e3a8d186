package codeworker

import (
	"context"
	"errors"
	"io"
	"maps"
	"os"
	"strings"
	"testing"
	"time"

	"treeline/internal/call"
	"treeline/internal/devenv/devtest"
	"treeline/internal/ledger"
	"treeline/internal/sandbox"
	"treeline/internal/sandbox/local"
	"treeline/internal/store"
)

// faulty is a real driver whose sessions go wrong as a test says.
type faulty struct {
	sandbox.Driver
	startErr error
	session  func(sandbox.Session) sandbox.Session
}

func (f *faulty) Start(ctx context.Context, spec sandbox.Spec) (sandbox.Session, error) {
	if f.startErr != nil {
		return nil, f.startErr
	}
	s, err := f.Driver.Start(ctx, spec)
	if err != nil {
		return nil, err
	}
	return f.session(s), nil
}

// forgetful leaves a file out of the tree, as a tree would that was read in part.
type forgetful struct{ sandbox.Session }

func (s forgetful) Take(ctx context.Context) (sandbox.Tree, error) {
	tree, err := s.Session.Take(ctx)
	tree.Files = tree.Files[1:]
	return tree, err
}

// lying gives bytes other than those that it listed.
type lying struct{ sandbox.Session }

func (s lying) Open(ctx context.Context, path string) (io.ReadCloser, error) {
	in, err := s.Session.Open(ctx, path)
	if err != nil {
		return nil, err
	}
	return struct {
		io.Reader
		io.Closer
	}{io.MultiReader(strings.NewReader("?"), in), in}, nil
}

// mute can give no tree at all.
type mute struct{ sandbox.Session }

func (mute) Take(context.Context) (sandbox.Tree, error) {
	return sandbox.Tree{}, &sandbox.TreeUnreadable{Path: "d/e", Err: errors.New("no such device")}
}

// doomed loses its sandbox a while after the program began.
type doomed struct{ *local.Session }

func (s doomed) Run(ctx context.Context, p sandbox.Program) (sandbox.Outcome, error) {
	timer := time.AfterFunc(700*time.Millisecond, func() {
		if process, err := os.FindProcess(s.InitPID()); err == nil {
			_ = process.Kill()
		}
	})
	defer timer.Stop()
	return s.Session.Run(ctx, p)
}

func TestATreeThatIsNotWholeChangesNothing(t *testing.T) {
	t.Parallel()
	driver := newDriver(t)
	before := map[string]string{"a": "1", "b": "2"}
	for _, c := range []struct {
		name    string
		session func(sandbox.Session) sandbox.Session
		code    string
		coded   call.Code
		says    []string
		stdout  string
	}{
		{"a file is missing from the list", func(s sandbox.Session) sandbox.Session { return forgetful{s} }, "print('said')", call.TreeUnreadable,
			[]string{"ran to its end", "could not be read whole", "nothing of the run was kept"}, "said\n"},
		{"other bytes than listed", func(s sandbox.Session) sandbox.Session { return lying{s} }, "print('said'); open('workspace/a','w').write('new')",
			call.TreeUnreadable, []string{"could not be read whole"}, "said\n"},
		{"no tree", func(s sandbox.Session) sandbox.Session { return mute{s} }, "print('said')\n1/0", call.TreeUnreadable,
			[]string{"The code failed", `(at "d/e")`, "ZeroDivisionError"}, "said\n"},
		{"the sandbox is lost", func(s sandbox.Session) sandbox.Session { return doomed{s.(*local.Session)} },
			"open('workspace/a','w').write('new'); print('said')\nimport time; time.sleep(20)", call.SandboxLost,
			[]string{"The sandbox was lost"}, "said\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, driven(&faulty{Driver: driver, session: c.session}))
			b.start(NoInputs{}, testConfig())
			b.seed(before)
			got := b.do(c.code, nil)
			if got.Status != call.Failed || got.Code != c.coded || !got.Changes.Empty() || got.data.Stdout != c.stdout {
				t.Errorf("%s %s, changes %+v, stdout %q\n%s", got.Status, got.Code, got.Changes, got.data.Stdout, got.text)
			}
			for _, part := range c.says {
				if !strings.Contains(got.text, part) {
					t.Errorf("the text lacks %q:\n%s", part, got.text)
				}
			}
			if files := b.files(); !maps.Equal(files, before) {
				t.Errorf("files: %q", files)
			}
		})
	}
}

func TestASandboxThatDoesNotStartFailsTheCall(t *testing.T) {
	t.Parallel()
	b := newBench(t, driven(&faulty{startErr: &sandbox.Unavailable{Driver: "local", Reason: "the secret path /x is missing"}}))
	b.start(NoInputs{}, testConfig())
	got := b.do("print(1)", nil)
	if got.Status != call.Failed || got.Code != call.SandboxLost || strings.Contains(got.text, "secret") {
		t.Errorf("%s %s\n%s", got.Status, got.Code, got.text)
	}
}

func TestARunCommitsThoughTheQueueIsLost(t *testing.T) {
	t.Parallel()
	nats := devtest.NATS(t)
	b := newBench(t, queued(nats))
	b.start(NoInputs{}, testConfig())
	k := b.running(sleeps("1"))
	if err := nats.Stop(); err != nil {
		t.Fatal(err)
	}
	if got := b.answer(k); got.Status != call.OK || got.Attempt != 1 {
		t.Errorf("%s %s, attempt %d", got.Status, got.Code, got.Attempt)
	}
	if err := nats.Start(); err != nil {
		t.Fatal(err)
	}
	if files := b.files(); !maps.Equal(files, map[string]string{"a": "1"}) {
		t.Errorf("files: %q", files)
	}
}

func TestARunOutlastsAShortAbsenceOfTheDatabase(t *testing.T) {
	t.Parallel()
	server, db := devtest.OwnPostgres(t, store.Migrate)
	b := newBench(t, stored(db.TCPURL), lease(6*time.Second))
	b.start(NoInputs{}, testConfig())
	k := b.running(sleeps("1"))
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(2 * time.Second) // the run ends meanwhile
	if err := server.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := b.answer(k); got.Status != call.OK || got.Attempt != 1 {
		t.Errorf("%s %s, attempt %d", got.Status, got.Code, got.Attempt)
	}
	if files := b.files(); !maps.Equal(files, map[string]string{"a": "1"}) {
		t.Errorf("files: %q", files)
	}
}

func TestARunIsStoppedOnceTheDatabaseWasAwayForALease(t *testing.T) {
	t.Parallel()
	server, db := devtest.OwnPostgres(t, store.Migrate)
	b := newBench(t, stored(db.TCPURL), lease(1500*time.Millisecond))
	stop, _ := b.start(NoInputs{}, testConfig())
	k := b.running(sleeps("60"))
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	stop()
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("the run went on for %s", took)
	}
	if err := server.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if row := b.row(k); row.State != string(ledger.Running) || row.Attempt != 1 {
		t.Errorf("state %s, attempt %d, want it left for the sweeper", row.State, row.Attempt)
	}
	if files := b.files(); len(files) != 0 {
		t.Errorf("files: %q", files)
	}
}
