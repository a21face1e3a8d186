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
		err = l.serve(req, files)
		closeAll(files)
		if err != nil {
			return 1
		}
	}
}

type launcher struct {
	ch      *channel
	reapers sync.WaitGroup
}

func (l *launcher) serve(req request, files []*os.File) error {
	switch {
	case req.Find != nil:
		found, err := findRuntime(req.Find.Candidates)
		return l.ch.send(reply{Runtime: found, Err: asStep("find the interpreter", err)})
	case req.Start && len(files) == 3:
		pid, pidfd, err := l.start(files)
		if err != nil {
			return l.ch.send(reply{Err: asStep("clone into new namespaces", err)})
		}
		defer unix.Close(pidfd)
		return l.ch.send(reply{PID: pid}, pidfd)
	}
	return l.ch.send(reply{Err: &stepError{Step: "read the request", Text: "it asks for nothing known"}})
}

func (l *launcher) start(files []*os.File) (pid, pidfd int, err error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return 0, 0, err
	}
	defer null.Close()
	process, err := os.StartProcess("/proc/self/exe", []string{initName}, &os.ProcAttr{
		Dir:   "/",
		Env:   []string{"GOMAXPROCS=2"},
		Files: []*os.File{null, files[1], files[2], files[0]},
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
		return 0, 0, err
	}
	l.reapers.Go(func() { _, _ = process.Wait() })
	return process.Pid, pidfd, nil
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
