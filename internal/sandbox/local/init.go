package local

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"unsafe"

	"golang.org/x/sys/unix"
)

// initMain is the first process of a session's namespaces. It makes the root, waits to be told to run the program,
// watches over it, and takes everything in its pid namespace with it when it ends.
func initMain() int {
	ch, err := newChannel(os.NewFile(channelFD, "worker"))
	if err != nil {
		return 1
	}
	var s setup
	outputs, err := ch.receive(&s)
	if err != nil {
		return 1
	}
	if err := takeOutputs(outputs); err != nil {
		_ = ch.send(ready{Err: asStep("take the outputs", err)})
		return 1
	}
	trees, abi, err := prepare(s)
	if err != nil {
		_ = ch.send(ready{Err: asStep("prepare", err)})
		return 1
	}
	if err := ch.send(ready{Landlock: abi}, trees.writable, trees.readable); err != nil {
		return 1
	}
	unix.Close(trees.readable)
	var begin start
	if _, err := ch.receive(&begin); err != nil || !begin.Run {
		return 1
	}
	if err := ch.send(run(s, trees, abi, ch)); err != nil {
		return 1
	}
	return 0
}

// takeOutputs makes the two files this process's, and so the program's, standard output and error.
func takeOutputs(files []*os.File) error {
	defer closeAll(files)
	if len(files) != 2 {
		return errors.New("they did not come")
	}
	for i, f := range files {
		if err := unix.SetNonblock(int(f.Fd()), false); err != nil { // programs do not expect to be told to try again
			return err
		}
		if err := unix.Dup3(int(f.Fd()), i+1, 0); err != nil {
			return err
		}
	}
	return nil
}

func prepare(s setup) (rootTrees, int, error) {
	trees, err := makeRoot(s)
	if err != nil {
		return rootTrees{}, 0, err
	}
	if err := shield(); err != nil {
		return rootTrees{}, 0, err
	}
	if err := unix.Sethostname([]byte("sandbox")); err != nil {
		return rootTrees{}, 0, fmt.Errorf("name the host: %w", err)
	}
	return trees, landlockABI(), nil
}

// shield keeps the program, which runs as the same user, from reading init or ending it: its memory and descriptors are
// not for others, and with no handler installed a pid namespace's first process gets no signal from within.
func shield() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("hide init: %w", err)
	}
	signal.Reset()
	for sig := 1; sig < 65; sig++ {
		if sig == int(unix.SIGKILL) || sig == int(unix.SIGSTOP) {
			continue
		}
		var deflt [4]uint64 // struct sigaction: SIG_DFL, no flags, no restorer, an empty mask
		_, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(sig), uintptr(unsafe.Pointer(&deflt)), 0, 8, 0, 0)
		if errno != 0 && !errors.Is(errno, unix.EINVAL) {
			return fmt.Errorf("reset signal %d: %w", sig, errno)
		}
	}
	return nil
}

// setLimits sets what the program inherits and init can live with, once init has passed its descriptors on: all of one
// user's that are on their way anywhere count against this limit of open files, those of another run's program included.
// The number of processes is set around the fork.
func setLimits(s setup) error {
	for _, l := range []struct {
		name     string
		resource int
		value    uint64
	}{
		{"core size", unix.RLIMIT_CORE, 0},
		{"file size", unix.RLIMIT_FSIZE, uint64(s.FileSize)},
		{"locked memory", unix.RLIMIT_MEMLOCK, 64 << 10},
		{"message queues", unix.RLIMIT_MSGQUEUE, 0},
		{"pending signals", unix.RLIMIT_SIGPENDING, 1024},
		{"open files", unix.RLIMIT_NOFILE, uint64(s.OpenFiles)},
	} {
		limit := unix.Rlimit{Cur: l.value, Max: l.value}
		var old unix.Rlimit
		if err := unix.Getrlimit(l.resource, &old); err == nil && old.Max < limit.Max {
			limit = unix.Rlimit{Cur: old.Max, Max: old.Max}
		}
		if err := unix.Setrlimit(l.resource, &limit); err != nil {
			return fmt.Errorf("limit %s: %w", l.name, err)
		}
	}
	return nil
}
