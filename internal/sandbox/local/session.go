package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"treeline/internal/sandbox"

	"golang.org/x/sys/unix"
)

// graceTime is how long past its deadline a run may last before the worker stops relying on init and kills it itself.
const graceTime = time.Second

// Session is one sealed run.
type Session struct {
	limits   sandbox.Limits
	ch       *channel
	pid      int
	pidfd    *os.File
	out      [2]*os.File // read ends of stdout and stderr
	trees    [2]*os.File // the writable tree and the read-only one
	group    *cgroup
	put      filler
	taken    *sandbox.Tree
	ran      bool
	closed   bool
	lost     bool
	landlock int

	gone      chan struct{} // closed when every process of the session is dead
	stopped   chan struct{} // closed by the first Stop
	stopOnce  sync.Once
	closeOnce sync.Once
	waiting   bool
}

var _ sandbox.Session = (*Session)(nil)

// InitPID gives the process id, on the host, of the first process of the session's pid namespace, with which every other
// dies. It is for tests and for diagnosis.
func (s *Session) InitPID() int { return s.pid }

// openPipes makes the session's output pipes and gives the ends that are init's.
func (s *Session) openPipes(user int) ([]*os.File, error) {
	var ends []*os.File
	for i := range s.out {
		r, w, err := os.Pipe()
		if err != nil {
			closeAll(ends)
			return nil, fmt.Errorf("make the output pipes: %w", err)
		}
		s.out[i] = r
		ends = append(ends, w)
		if os.Geteuid() == 0 { // so that the program may open /dev/stdout
			if err := w.Chown(user, user); err != nil {
				closeAll(ends)
				return nil, fmt.Errorf("make the output pipes: %w", err)
			}
		}
	}
	return ends, nil
}

// prepare tells init what to build and takes over the two trees.
func (s *Session) prepare(ctx context.Context, files *runtimeFiles, filter []byte, ends []*os.File) error {
	s.ch.deadline(time.Now().Add(startTimeout))
	defer s.ch.deadline(time.Time{})
	stop := context.AfterFunc(ctx, s.kill)
	defer stop()
	l := s.limits
	err := s.ch.send(setup{
		Runtime: files, Filter: filter, Disk: l.Disk, Inodes: l.Inodes, Inputs: l.Inputs, FileSize: l.FileSize,
		OpenFiles: l.OpenFiles, Processes: l.Processes, Memory: l.Memory, WallMillis: l.Wall.Milliseconds(),
	}, int(ends[0].Fd()), int(ends[1].Fd()))
	if err != nil {
		return errors.Join(err, ctx.Err())
	}
	var r ready
	trees, err := s.ch.receive(&r)
	if err != nil {
		return errors.Join(fmt.Errorf("start a sandbox: %w", err), ctx.Err())
	}
	if r.Err != nil || len(trees) != 2 {
		closeAll(trees)
		return unavailable(r.Err)
	}
	s.trees, s.landlock = [2]*os.File(trees), r.Landlock
	s.put = newFiller(s.trees, l.Inputs)
	return nil
}

// adopt takes over the process that the launcher made.
func (s *Session) adopt(pid int, pidfd *os.File, ch *channel, err error) error {
	if err != nil {
		return err
	}
	s.pid, s.pidfd, s.ch, s.waiting = pid, pidfd, ch, true
	go s.awaitDeath()
	return nil
}

// awaitDeath closes gone when init is dead, which it is only when all of its pid namespace is.
func (s *Session) awaitDeath() {
	defer close(s.gone)
	conn, err := s.pidfd.SyscallConn()
	if err != nil {
		return
	}
	_ = conn.Control(func(fd uintptr) {
		for {
			n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, -1)
			if n > 0 || (err != nil && err != unix.EINTR) {
				return
			}
		}
	})
}

func (s *Session) kill() {
	conn, err := s.pidfd.SyscallConn()
	if err != nil {
		return
	}
	_ = conn.Control(func(fd uintptr) { _ = unix.PidfdSendSignal(int(fd), unix.SIGKILL, nil, 0) })
}

// Stop kills the run.
func (s *Session) Stop() {
	s.stopOnce.Do(func() {
		close(s.stopped)
		s.kill()
	})
}

// Put streams a file in.
func (s *Session) Put(ctx context.Context, path string, content io.Reader) error {
	if s.ran || s.closed {
		return errors.New("put: the run has begun or the session is closed")
	}
	return s.put.put(ctx, path, content)
}

// Run runs the program to its end.
func (s *Session) Run(ctx context.Context, program sandbox.Program) (sandbox.Outcome, error) {
	if s.ran || s.closed {
		return sandbox.Outcome{}, errors.New("run: a session runs once, before it is closed")
	}
	s.ran = true
	if err := s.put.program(program.Code); err != nil {
		return sandbox.Outcome{}, err
	}
	began := time.Now()
	defer context.AfterFunc(ctx, s.Stop)()
	backstop := time.AfterFunc(s.limits.Wall+graceTime, s.kill)
	defer backstop.Stop()
	var outputs sync.WaitGroup
	recorders := s.record(program.Output, &outputs)
	kills := oomKills()
	end, err := s.await()
	s.kill()
	<-s.gone
	outputs.Wait()
	out := s.outcome(end, err, time.Since(began))
	if out.Signal == int(unix.SIGKILL) && (out.Reason == sandbox.Raised || out.Reason == sandbox.Lost) && oomKills() > kills {
		out.Reason = sandbox.OutOfMemory // by the kernel, before the watchdog saw it
	}
	s.lost = out.Reason == sandbox.Lost
	out.Stdout, out.Stderr = recorders[0].Output(), recorders[1].Output()
	if end.Err != nil && out.Reason != sandbox.Cancelled {
		return sandbox.Outcome{}, end.Err
	}
	return out, nil
}

// await starts the program and waits for init's account of it.
func (s *Session) await() (ended, error) {
	var end ended
	if err := s.ch.send(start{Run: true}); err != nil {
		return end, err
	}
	_, err := s.ch.receive(&end)
	return end, err
}

// record reads both streams until their last writer is dead.
func (s *Session) record(emit func(sandbox.Stream, string), wait *sync.WaitGroup) [2]*sandbox.Recorder {
	var recorders [2]*sandbox.Recorder
	for i, stream := range []sandbox.Stream{sandbox.Stdout, sandbox.Stderr} {
		var each func(string)
		if emit != nil {
			each = func(text string) { emit(stream, text) }
		}
		recorder := sandbox.NewRecorder(s.limits.Output, each)
		recorders[i] = recorder
		wait.Go(func() {
			_, _ = io.CopyBuffer(recorder, onlyReader{s.out[i]}, make([]byte, 64<<10))
			_ = recorder.Close()
		})
	}
	return recorders
}

// onlyReader hides what a file can do beyond reading, so that copying uses the buffer.
type onlyReader struct{ io.Reader }

func (s *Session) outcome(end ended, err error, took time.Duration) sandbox.Outcome {
	killed := sandbox.Outcome{ExitCode: 128 + int(unix.SIGKILL), Signal: int(unix.SIGKILL), Duration: took}
	select {
	case <-s.stopped:
		killed.Reason = sandbox.Cancelled
		return killed
	default:
	}
	if err == nil {
		return sandbox.Outcome{
			Reason: sandbox.Reason(end.Reason), ExitCode: end.ExitCode, Signal: end.Signal, PeakMemory: end.Peak,
			Duration: time.Duration(end.DurationMicros) * time.Microsecond,
		}
	}
	if took >= s.limits.Wall {
		killed.Reason = sandbox.Timeout
		return killed
	}
	killed.Reason = sandbox.Lost
	return killed
}

// Close kills what runs and frees the session.
func (s *Session) Close() error {
	var err error
	s.closeOnce.Do(func() {
		s.closed = true
		s.stopOnce.Do(func() { close(s.stopped) })
		if s.waiting {
			s.kill()
			<-s.gone
		}
		err = s.group.remove()
		if s.ch != nil {
			err = errors.Join(err, s.ch.close())
		}
		for _, f := range []*os.File{s.pidfd, s.out[0], s.out[1], s.trees[0], s.trees[1]} {
			if f != nil {
				err = errors.Join(err, f.Close())
			}
		}
	})
	return err
}
