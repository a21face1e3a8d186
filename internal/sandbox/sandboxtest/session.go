package sandboxtest

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"treeline/internal/sandbox"
)

func testSession(t *testing.T, d sandbox.Driver) {
	t.Run("streams output as it comes", func(t *testing.T) {
		s := Start(t, d, sandbox.Limits{})
		var mu sync.Mutex
		var first time.Time
		got := map[sandbox.Stream]string{}
		code := "import sys, time\nprint('a')\nprint('b', file=sys.stderr)\ntime.sleep(0.5)\nprint('c')"
		_, err := s.Run(t.Context(), sandbox.Program{Code: []byte(code), Output: func(stream sandbox.Stream, text string) {
			mu.Lock()
			defer mu.Unlock()
			if first.IsZero() {
				first = time.Now()
			}
			got[stream] += text
		}})
		if err != nil {
			t.Fatal(err)
		}
		if early := time.Since(first); early < 400*time.Millisecond {
			t.Errorf("the first line came %v before the end, want at least 400 ms", early)
		}
		if want := map[sandbox.Stream]string{sandbox.Stdout: "a\nc\n", sandbox.Stderr: "b\n"}; !maps.Equal(got, want) {
			t.Errorf("streamed %q, want %q", got, want)
		}
	})
	t.Run("stop kills at once, whatever the program does about signals", func(t *testing.T) {
		code := "import signal, time\nfor s in range(1, 65):\n try: signal.signal(s, signal.SIG_IGN)\n except (OSError, ValueError): pass\n" +
			"print('up')\nwhile True:\n try: time.sleep(60)\n except BaseException: pass"
		expectCancelled(t, d, code, func(s sandbox.Session, _ context.CancelFunc) { s.Stop() })
	})
	t.Run("the context's end kills at once", func(t *testing.T) {
		expectCancelled(t, d, "print('up')\nwhile True: pass", func(_ sandbox.Session, cancel context.CancelFunc) { cancel() })
	})
	t.Run("close twice, and before a run", func(t *testing.T) {
		s := Start(t, d, sandbox.Limits{})
		for range 2 {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	t.Run("stop before the run", func(t *testing.T) {
		s := Start(t, d, sandbox.Limits{})
		s.Stop()
		s.Stop()
		out, err := s.Run(t.Context(), sandbox.Program{Code: []byte("print(1)")})
		if err != nil || out.Reason != sandbox.Cancelled || out.Stdout.Total != 0 {
			t.Errorf("got %+v, %v, want cancelled without output", out, err)
		}
	})
	t.Run("nothing works once closed", func(t *testing.T) {
		s := Start(t, d, sandbox.Limits{})
		if _, err := s.Run(t.Context(), sandbox.Program{Code: []byte("open('workspace/a', 'w')")}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Take(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s.Stop()
		_, take := s.Take(t.Context())
		_, open := s.Open(t.Context(), "a")
		_, run := s.Run(t.Context(), sandbox.Program{})
		for name, err := range map[string]error{"put": s.Put(t.Context(), "workspace/b", strings.NewReader("")), "take": take, "open": open, "run": run} {
			if err == nil {
				t.Errorf("%s works", name)
			}
		}
	})
	t.Run("a session runs once", func(t *testing.T) {
		s := Start(t, d, sandbox.Limits{})
		for i := range 2 {
			_, err := s.Run(t.Context(), sandbox.Program{Code: []byte("print(1)")})
			if (err != nil) != (i == 1) {
				t.Errorf("run %d: %v", i+1, err)
			}
		}
	})
	t.Run("no tree without a run", func(t *testing.T) {
		s := Start(t, d, sandbox.Limits{})
		Put(t, s, "workspace/a", "1")
		var unreadable *sandbox.TreeUnreadable
		if _, err := s.Take(t.Context()); !errors.As(err, &unreadable) {
			t.Errorf("took a tree: %v", err)
		}
	})
	t.Run("what cannot be put", func(t *testing.T) { testPut(t, d) })
	t.Run("at the same time, and apart", func(t *testing.T) { testParallel(t, d) })
	t.Run("workspace is something else", func(t *testing.T) { testReplaced(t, d) })
	t.Run("past the tree's limits", func(t *testing.T) { testTooLarge(t, d) })
}

func expectCancelled(t *testing.T, d sandbox.Driver, code string, end func(sandbox.Session, context.CancelFunc)) {
	t.Helper()
	s := Start(t, d, sandbox.Limits{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var ended time.Time
	out, err := s.Run(ctx, sandbox.Program{Code: []byte(code), Output: func(sandbox.Stream, string) {
		ended = time.Now()
		end(s, cancel)
	}})
	if err != nil || out.Reason != sandbox.Cancelled {
		t.Fatalf("got %+v, %v, want cancelled", out, err)
	}
	if took := time.Since(ended); took > 900*time.Millisecond {
		t.Errorf("it took %v to die", took)
	}
}

func testPut(t *testing.T, d sandbox.Driver) {
	s := Start(t, d, sandbox.Limits{Inputs: 1 << 20, Disk: 4 << 20})
	for _, path := range []string{"", "a", "workspace", "workspace/", "/workspace/a", "workspace/../a", "workspace//a", "workspace/./a",
		"code/main.py", "inputs/../workspace/a", "workspace/a\x00b", "../workspace/a"} {
		var wrong *sandbox.PathError
		if err := s.Put(t.Context(), path, strings.NewReader("x")); !errors.As(err, &wrong) {
			t.Errorf("put %q: %v, want a path error", path, err)
		}
	}
	Put(t, s, "workspace/file", "x")
	var wrong *sandbox.PathError
	if err := s.Put(t.Context(), "workspace/file/below", strings.NewReader("x")); !errors.As(err, &wrong) {
		t.Errorf("put below a file: %v, want a path error", err)
	}
	if err := s.Put(t.Context(), "inputs/big", strings.NewReader(strings.Repeat("x", 1<<20+1))); !errors.Is(err, sandbox.ErrFull) {
		t.Errorf("put past the inputs: %v, want full", err)
	}
	if err := s.Put(t.Context(), "workspace/big", strings.NewReader(strings.Repeat("x", 5<<20))); !errors.Is(err, sandbox.ErrFull) {
		t.Errorf("put past the disk: %v, want full", err)
	}
	broken := errors.New("broken")
	if err := s.Put(t.Context(), "workspace/broken", &failing{broken}); !errors.Is(err, broken) {
		t.Errorf("put from a broken reader: %v", err)
	}
}

type failing struct{ err error }

func (f *failing) Read([]byte) (int, error) { return 0, f.err }

func testParallel(t *testing.T, d sandbox.Driver) {
	var all sync.WaitGroup
	for _, word := range []string{"one", "two", "three"} {
		s := Start(t, d, sandbox.Limits{})
		Put(t, s, "workspace/"+word, word)
		all.Go(func() {
			code := "import os, time\ntime.sleep(0.3)\nopen('/tmp/x', 'x')\nprint(os.listdir('workspace'), len([p for p in os.listdir('/proc') if p.isdigit()]))"
			out, err := s.Run(t.Context(), sandbox.Program{Code: []byte(code)})
			if want := "['" + word + "'] 2\n"; err != nil || out.Stdout.Head != want {
				t.Errorf("got %q, %q, %v, want %q", out.Stdout.Head, out.Stderr.Head, err, want)
			}
		})
	}
	all.Wait()
}

func testTooLarge(t *testing.T, d sandbox.Driver) {
	for name, c := range map[string]struct {
		code string
		want sandbox.TreeTooLarge
	}{
		"bytes":  {"open('workspace/a', 'w').write('x' * 2000)\nopen('workspace/b', 'w').write('x' * 9)", sandbox.TreeTooLarge{Bytes: 2009, Files: 2}},
		"files":  {"for i in range(12): open(f'workspace/{i}', 'w')", sandbox.TreeTooLarge{Bytes: 0, Files: 12}},
		"sparse": {"for i in range(9): open(f'workspace/{i}', 'w').truncate(1 << 27)", sandbox.TreeTooLarge{Bytes: 9 << 27, Files: 9}},
	} {
		t.Run(name, func(t *testing.T) {
			s := Start(t, d, sandbox.Limits{TreeBytes: 1000, TreeFiles: 10})
			if out, err := s.Run(t.Context(), sandbox.Program{Code: []byte(c.code)}); err != nil || out.Reason != sandbox.OK {
				t.Fatalf("run: %+v, %v", out, err)
			}
			var large *sandbox.TreeTooLarge
			if _, err := s.Take(t.Context()); !errors.As(err, &large) || *large != c.want {
				t.Errorf("take: %v, want %v", err, &c.want)
			}
		})
	}
}

// testReplaced sees that what took the folder's place is never read as a tree, and that a folder that is gone is empty.
func testReplaced(t *testing.T, d sandbox.Driver) {
	for name, c := range map[string]struct {
		code    string
		whole   bool
		outside []string
	}{
		"a link":  {"os.symlink('/usr', 'workspace')", false, nil},
		"a file":  {"open('workspace', 'w')", false, nil},
		"a pipe":  {"os.mkfifo('workspace')", false, nil},
		"nothing": {"", true, nil},
		"moved":   {"os.makedirs('else/where'); os.rename('else', 'other')", true, []string{"other/where/"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := Start(t, d, sandbox.Limits{})
			Put(t, s, "workspace/a", "1")
			code := "import os, shutil\nshutil.rmtree('workspace')\n" + c.code
			if out, err := s.Run(t.Context(), sandbox.Program{Code: []byte(code)}); err != nil || out.Reason != sandbox.OK {
				t.Fatalf("run: %+v, %v", out, err)
			}
			tree, err := s.Take(t.Context())
			var unreadable *sandbox.TreeUnreadable
			if !c.whole && !errors.As(err, &unreadable) {
				t.Errorf("take: %+v, %v, want unreadable", tree, err)
			}
			if c.whole && (err != nil || tree.Check() != nil || len(tree.Files) != 0 || !slices.Equal(tree.Outside, c.outside)) {
				t.Errorf("take: %+v, %v, want empty", tree, err)
			}
		})
	}
}
