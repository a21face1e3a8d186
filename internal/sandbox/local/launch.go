package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// launcherProcess is the worker's hold on its launcher. It is for one goroutine at a time.
type launcherProcess struct {
	cmd *exec.Cmd
	ch  *channel
}

func newLauncherProcess(user int) (*launcherProcess, error) {
	near, far, err := newPair("launcher")
	if err != nil {
		return nil, err
	}
	defer far.Close()
	cmd := exec.Command("/proc/self/exe")
	cmd.Args = []string{launcherName}
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	cmd.Dir = "/"
	cmd.ExtraFiles = []*os.File{far}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if os.Geteuid() == 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(user), Gid: uint32(user), Groups: []uint32{}}
	}
	if err := cmd.Start(); err != nil {
		near.close()
		return nil, fmt.Errorf("as user %d: %w", user, err)
	}
	return &launcherProcess{cmd: cmd, ch: near}, nil
}

func (l *launcherProcess) find(ctx context.Context, candidates []string) (*runtimeFiles, error) {
	r, files, err := l.exchange(ctx, time.Minute, request{Find: &findRequest{Candidates: candidates}})
	closeAll(files)
	if err != nil {
		return nil, err
	}
	return r.Runtime, nil
}

// start gets an init: its process id, pidfd and channel, which are the caller's to close.
func (l *launcherProcess) start(ctx context.Context) (pid int, pidfd *os.File, ch *channel, err error) {
	r, files, err := l.exchange(ctx, startTimeout, request{Start: true})
	if err != nil {
		return 0, nil, nil, err
	}
	if len(files) != 2 {
		closeAll(files)
		return 0, nil, nil, errors.New("start a sandbox: the launcher passed no process")
	}
	if ch, err = newChannel(files[1]); err != nil {
		files[0].Close()
		return 0, nil, nil, err
	}
	return r.PID, files[0], ch, nil
}

// exchange sends a request and waits for its reply. After an error that is no stepError the launcher is out of step and
// must be closed.
func (l *launcherProcess) exchange(ctx context.Context, limit time.Duration, req request) (reply, []*os.File, error) {
	l.ch.deadline(time.Now().Add(limit))
	stop := context.AfterFunc(ctx, func() { l.ch.deadline(time.Unix(1, 0)) })
	defer stop()
	if err := l.ch.send(req); err != nil {
		return reply{}, nil, errors.Join(err, ctx.Err())
	}
	var r reply
	files, err := l.ch.receive(&r)
	if err != nil {
		return reply{}, nil, errors.Join(err, ctx.Err())
	}
	if r.Err != nil {
		closeAll(files)
		return reply{}, nil, r.Err
	}
	return r, files, nil
}

// close ends the launcher by hanging up, which ends it and its inits, and makes sure.
func (l *launcherProcess) close() error {
	err := l.ch.close()
	_ = l.cmd.Process.Signal(unix.SIGKILL)
	var exit *exec.ExitError
	if werr := l.cmd.Wait(); werr != nil && !errors.As(werr, &exit) {
		err = errors.Join(err, werr)
	}
	return err
}
