package local

import (
	"errors"
	"os"
	"runtime"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// insideID is the user and group that the program sees itself as.
const insideID = 1000

// initCaps are what init needs, within its own user namespace, to make the root, to watch and to kill.
var initCaps = []uintptr{
	unix.CAP_SYS_ADMIN, unix.CAP_SYS_CHROOT, unix.CAP_SYS_PTRACE, unix.CAP_KILL, unix.CAP_SETPCAP, unix.CAP_DAC_OVERRIDE,
}

// launcherMain serves the worker until the worker is gone. It runs as an unprivileged user, so that no namespace it makes
// is owned by root, and it is small, so that cloning it is cheap.
func launcherMain() int {
	runtime.LockOSThread() // parent-death signals are bound to the thread that clones
	ch, err := newChannel(os.NewFile(channelFD, "worker"))
	if err != nil {
		return 1
	}
	l := &launcher{ch: ch}
	for {
		var req request
		files, err := ch.receive(&req)
		if err != nil {
			return 0 // the worker is gone; the inits see that themselves, and die with this process at the latest
		}
		closeAll(files)
		if err := l.serve(req); err != nil {
			return 1
		}
	}
}

type launcher struct {
	ch      *channel
	reapers sync.WaitGroup
	spare   *blank
}

// blank is an init that waits for its setup: namespaces and nothing else, the same for every session, and used once.
// Having one ready takes the cost of a process's first steps out of a session's start.
type blank struct {
	pid   int
	pidfd *os.File
	near  *os.File // the worker's end of its channel
}

func (b *blank) close() { closeAll([]*os.File{b.pidfd, b.near}) }

// dead reports whether it has ended while it waited.
func (b *blank) dead() bool {
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(b.pidfd.Fd()), Events: unix.POLLIN}}, 0)
	return n != 0 || err != nil
}

func (l *launcher) serve(req request) error {
	switch {
	case req.Find != nil:
		found, err := findRuntime(req.Find.Candidates)
		return l.ch.send(reply{Runtime: found, Err: asStep("find the interpreter", err)})
	case req.Start:
		return l.start()
	}
	return l.ch.send(reply{Err: &stepError{Step: "read the request", Text: "it asks for nothing known"}})
}

// start hands an init over and makes the next one ready.
func (l *launcher) start() error {
	b := l.spare
	l.spare = nil
	if b != nil && b.dead() {
		b.close()
		b = nil
	}
	if b == nil {
		var err error
		if b, err = l.makeBlank(); err != nil {
			return l.ch.send(reply{Err: asStep("clone into new namespaces", err)})
		}
	}
	err := l.ch.send(reply{PID: b.pid}, int(b.pidfd.Fd()), int(b.near.Fd()))
	b.close()
	if err != nil {
		return err
	}
	l.spare, _ = l.makeBlank() // what is wrong with it is told when one is needed
	return nil
}

func (l *launcher) makeBlank() (*blank, error) {
	near, far, err := socketPair("init")
	if err != nil {
		return nil, err
	}
	defer far.Close()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		near.Close()
		return nil, err
	}
	defer null.Close()
	var pidfd int
	process, err := os.StartProcess("/proc/self/exe", []string{initName}, &os.ProcAttr{
		Dir:   "/",
		Env:   []string{"GOMAXPROCS=2"},
		Files: []*os.File{null, null, null, far},
		Sys: &syscall.SysProcAttr{
			Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET |
				unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: insideID, HostID: os.Getuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: insideID, HostID: os.Getgid(), Size: 1}},
			AmbientCaps: initCaps,
			Setsid:      true,
			Pdeathsig:   unix.SIGKILL,
			PidFD:       &pidfd,
		},
	})
	if err != nil {
		near.Close()
		return nil, err
	}
	l.reapers.Go(func() { _, _ = process.Wait() })
	return &blank{pid: process.Pid, pidfd: os.NewFile(uintptr(pidfd), "init"), near: near}, nil
}

// asStep prepares an error for the way to another process; nil stays nil.
func asStep(step string, err error) *stepError {
	if err == nil {
		return nil
	}
	var already *stepError
	if errors.As(err, &already) {
		return already
	}
	e := &stepError{Step: step, Text: err.Error()}
	var errno unix.Errno
	if errors.As(err, &errno) {
		e.Errno = int(errno)
	}
	return e
}
