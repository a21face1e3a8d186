package local

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"treeline/internal/sandbox"

	"golang.org/x/sys/unix"
)

// environment is all that the program inherits.
var environment = []string{
	"PATH=/usr/local/bin:/usr/bin:/bin",
	"HOME=/home",
	"USER=user",
	"LANG=C.UTF-8",
	"TZ=UTC",
	"TMPDIR=/tmp",
	"PYTHONUTF8=1",
	"PYTHONDONTWRITEBYTECODE=1",
	"PYTHONNOUSERSITE=1",
	"PYTHONPATH=" + sandbox.WorkFolder + ":/code",
	"MPLBACKEND=Agg",
	"MPLCONFIGDIR=/home/matplotlib",
}

// run starts the program and stays until it is over, for whatever reason. All of the program's processes are killed
// before it returns; the kernel has them dead when init is.
func run(s setup, trees rootTrees, abi int, ch *channel) ended {
	began := time.Now()
	pid, err := startProgram(s, trees, abi)
	if err != nil {
		return ended{Err: asStep("start the program", err)}
	}
	exits := make(chan unix.WaitStatus, 1)
	go reap(pid, exits)
	gone := make(chan struct{})
	go awaitHangUp(ch, gone)
	w := newWatchdog(s.Memory, trees)
	end := ended{Reason: string(sandbox.OK)}
	deadline := time.NewTimer(time.Duration(s.WallMillis) * time.Millisecond)
	tick := time.NewTicker(watchInterval)
	for waiting := true; waiting; {
		select {
		case status := <-exits:
			end.ExitCode, end.Signal = exitOf(status)
			if end.ExitCode != 0 {
				end.Reason = string(sandbox.Raised)
			}
			waiting = false
		case <-tick.C:
			if w.over() {
				end.Reason, end.ExitCode, end.Signal = string(sandbox.OutOfMemory), 128+int(unix.SIGKILL), int(unix.SIGKILL)
				waiting = false
			}
		case <-deadline.C:
			end.Reason, end.ExitCode, end.Signal = string(sandbox.Timeout), 128+int(unix.SIGKILL), int(unix.SIGKILL)
			waiting = false
		case <-gone:
			os.Exit(1)
		}
	}
	end.DurationMicros, end.Peak = time.Since(began).Microseconds(), w.peak
	_ = unix.Kill(-1, unix.SIGKILL)
	return end
}

// startProgram forks the interpreter from a thread that has given up everything first. Only that thread and what it forks
// are sealed; it ends with this function's goroutine. What init keeps for itself, and the hard limit of processes, which
// would leave init no room for threads of its own, are set after the fork.
func startProgram(s setup, trees rootTrees, abi int) (int, error) {
	if err := setLimits(s); err != nil {
		return 0, err
	}
	var own unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NPROC, &own); err != nil {
		return 0, fmt.Errorf("read the limit of processes: %w", err)
	}
	type result struct {
		pid  int
		most uint64
		err  error
	}
	done := make(chan result)
	go func() {
		runtime.LockOSThread()
		// Init's threads count against the limit too; this one is about to leave.
		most := min(uint64(s.Processes+threads(trees.proc)-1), own.Max)
		pid, err := forkSealed(s, trees, abi, unix.Rlimit{Cur: most, Max: own.Max})
		done <- result{pid, most, err}
	}()
	r := <-done
	if r.err != nil {
		return 0, r.err
	}
	if err := unix.Prlimit(r.pid, unix.RLIMIT_NPROC, &unix.Rlimit{Cur: r.most, Max: r.most}, nil); err != nil {
		return 0, fmt.Errorf("limit processes: %w", err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_NPROC, &own); err != nil {
		return 0, fmt.Errorf("keep room for init: %w", err)
	}
	return r.pid, adjust(trees.score, 0)
}

// forkSealed forks the interpreter as the first to be killed where the machine runs short, and with few processes.
func forkSealed(s setup, trees rootTrees, abi int, processes unix.Rlimit) (int, error) {
	if err := adjust(trees.score, 1000); err != nil {
		return 0, err
	}
	if err := seal(s.Filter, abi); err != nil {
		return 0, err
	}
	if err := unix.Setrlimit(unix.RLIMIT_NPROC, &processes); err != nil {
		return 0, fmt.Errorf("limit processes: %w", err)
	}
	pid, err := syscall.ForkExec(s.Runtime.Python, []string{s.Runtime.Python, sandbox.ProgramFile}, &syscall.ProcAttr{
		Dir: sandbox.WorkFolder, Env: environment, Files: []uintptr{0, 1, 2},
	})
	if err != nil {
		return 0, fmt.Errorf("execute %s: %w", s.Runtime.Python, err)
	}
	return pid, nil
}

// reap collects every process that ends, as the first process of a pid namespace must, until the program itself has.
func reap(program int, exits chan<- unix.WaitStatus) {
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, 0, nil)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return
		}
		if pid == program && (status.Exited() || status.Signaled()) {
			exits <- status
		}
	}
}

// awaitHangUp closes gone when the worker's end of the channel is.
func awaitHangUp(ch *channel, gone chan<- struct{}) {
	var any struct{}
	for {
		if _, err := ch.receive(&any); err != nil {
			close(gone)
			return
		}
	}
}

func exitOf(status unix.WaitStatus) (code, sig int) {
	if status.Signaled() {
		return 128 + int(status.Signal()), int(status.Signal())
	}
	return status.ExitStatus(), 0
}

// threads counts init's own, which count against the program's limit too.
func threads(proc int) int {
	body, err := readAt(proc, "self/status", make([]byte, statusSize))
	if err != nil {
		return 1
	}
	return max(1, int(number(statusField(body, "Threads:"))))
}

// openScore opens the file that says how readily the kernel is to kill this process, and what it forks, when the machine
// runs short. It must be opened before shield, after which the file is no longer this user's.
func openScore(proc int) (int, error) {
	fd, err := unix.Openat(proc, "self/oom_score_adj", unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("open the score for running short of memory: %w", err)
	}
	return fd, nil
}

func adjust(score, value int) error {
	if _, err := unix.Pwrite(score, []byte(strconv.Itoa(value)), 0); err != nil {
		return fmt.Errorf("set the score for running short of memory: %w", err)
	}
	return nil
}

// statusSize is more than the longest of the kernel's accounts of a process that are read here.
const statusSize = 8 << 10

func readAt(dir int, path string, body []byte) ([]byte, error) {
	fd, err := unix.Openat(dir, path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	n, err := unix.Read(fd, body)
	if err != nil {
		return nil, err
	}
	return body[:n], nil
}
