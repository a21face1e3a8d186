package torture

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Process is one process of a fleet, which may be started and ended many times. Its methods may be called from several
// goroutines.
type Process struct {
	Name string
	spec spec
	log  string // the file that its standard error is added to
	// temporary is its folder for temporary files; the system's where it is empty.
	temporary string

	mu    sync.Mutex
	cmd   *exec.Cmd
	stdin io.Closer
	done  chan struct{}
}

// Start executes this binary anew and returns once the child says that it is ready. Starting what runs is fine.
func (p *Process) Start(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running() {
		return nil
	}
	if err := p.start(ctx); err != nil {
		return errors.Join(fmt.Errorf("start %s: %w", p.Name, err), p.signal(syscall.SIGKILL))
	}
	return nil
}

func (p *Process) start(ctx context.Context) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }() // the child has its own descriptor
	cmd := &exec.Cmd{Path: self, Args: []string{childName, p.Name}, Stderr: log, Env: append(os.Environ(), "GORACE=halt_on_error=1")}
	if p.temporary != "" {
		cmd.Env = append(cmd.Env, "TMPDIR="+p.temporary)
	}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	dieWithParent(cmd)
	started, done, told := make(chan error, 1), make(chan struct{}), make(chan struct{})
	go func() {
		// This thread must live as long as the child, which dies with it.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		if err := cmd.Start(); err != nil {
			started <- err
			return
		}
		started <- nil
		lines := bufio.NewScanner(stdout)
		for lines.Scan() {
			if strings.HasPrefix(lines.Text(), "ready") {
				close(told)
				break
			}
		}
		_, _ = io.Copy(io.Discard, stdout)
		_ = cmd.Wait() // how it ended stands in cmd.ProcessState
		close(done)
	}()
	if err := <-started; err != nil {
		return err
	}
	p.cmd, p.stdin, p.done = cmd, stdin, done
	if err := json.NewEncoder(stdin).Encode(p.spec); err != nil {
		return err
	}
	select {
	case <-told:
		return nil
	case <-done:
		return fmt.Errorf("it ended before it was ready (%s); see %s", cmd.ProcessState, p.log)
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (p *Process) running() bool {
	if p.cmd == nil || p.done == nil {
		return false
	}
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// Running reports whether the process lives.
func (p *Process) Running() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.running()
}

// PID of the process that runs or ran last; 0 where none did.
func (p *Process) PID() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil {
		return 0
	}
	return p.cmd.Process.Pid
}

func (p *Process) signal(sig syscall.Signal) error {
	if !p.running() {
		return nil
	}
	if err := p.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("send %s to %s: %w", sig, p.Name, err)
	}
	return nil
}

// Kill ends the process with SIGKILL and waits until it is gone.
func (p *Process) Kill() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.running() {
		return nil
	}
	if err := p.signal(syscall.SIGKILL); err != nil {
		return err
	}
	return p.gone(10 * time.Second)
}

// Term asks the process to end and waits. An exit code other than 0, or none within the time given, is an error.
func (p *Process) Term(within time.Duration) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.running() {
		return nil
	}
	if err := p.signal(syscall.SIGTERM); err != nil {
		return err
	}
	if err := p.gone(within); err != nil {
		return err
	}
	if !p.cmd.ProcessState.Success() {
		return fmt.Errorf("%s was asked to end and ended badly (%s); see %s", p.Name, p.cmd.ProcessState, p.log)
	}
	return nil
}

func (p *Process) gone(within time.Duration) error {
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case <-p.done:
		_ = p.stdin.Close()
		return nil
	case <-timer.C:
		return fmt.Errorf("%s (process %d) has not ended within %s", p.Name, p.cmd.Process.Pid, within)
	}
}

// Pause stops the process in its tracks; Resume lets it go on.
func (p *Process) Pause() error { return p.locked(syscall.SIGSTOP) }

// Resume lets a paused process go on.
func (p *Process) Resume() error { return p.locked(syscall.SIGCONT) }

func (p *Process) locked(sig syscall.Signal) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.signal(sig)
}
