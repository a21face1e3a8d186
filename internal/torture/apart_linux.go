package torture

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"

	"github.com/rs/zerolog"
)

// apartName is the name under which this binary is executed again to do a torture in a mount namespace of its own.
const apartName = "treeline-torture-apart"

// order is what such a process is to do. It comes on its standard input, which is open as long as its parent lives.
type order struct {
	Config Config
	Level  zerolog.Level
}

// outcome is what it answers on its standard output.
type outcome struct {
	Report Report
	Error  string
}

// runApart does a torture in a process with mounts of its own, which go with its last process however that ends.
// errors.ErrUnsupported says that there can be no such process.
func runApart(ctx context.Context, cfg Config) (Report, error) {
	self, err := os.Executable()
	if err != nil {
		return Report{}, fmt.Errorf("find this program: %w", err)
	}
	cmd := &exec.Cmd{Path: self, Args: []string{apartName}, Stderr: os.Stderr,
		SysProcAttr: &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return Report{}, fmt.Errorf("start a torture: %w", err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return Report{}, fmt.Errorf("start a torture: %w", err)
	}
	// From a thread that lives as long: the kernel kills the child when the thread that made it ends.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := cmd.Start(); err != nil {
		return Report{}, errors.Join(errors.ErrUnsupported, err)
	}
	defer context.AfterFunc(ctx, func() { _ = cmd.Process.Signal(syscall.SIGTERM) })() // it may have ended
	var out outcome
	err = json.NewEncoder(stdin).Encode(order{Config: cfg, Level: cfg.Log.GetLevel()})
	if err == nil {
		err = json.NewDecoder(stdout).Decode(&out)
	}
	ended := cmd.Wait()
	switch {
	case err != nil:
		return out.Report, fmt.Errorf("the process of the torture ended early (%v): %w", ended, err)
	case out.Error != "":
		return out.Report, errors.New(out.Error)
	}
	return out.Report, nil
}

// beApart is the other side of runApart.
func beApart() error {
	var o order
	if err := json.NewDecoder(os.Stdin).Decode(&o); err != nil {
		return fmt.Errorf("read what to do: %w", err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	o.Config.Log = zerolog.New(os.Stderr).Level(o.Level).With().Timestamp().Logger()
	report, err := runHere(ctx, o.Config)
	out := outcome{Report: report}
	if err != nil {
		out.Error = err.Error()
	}
	return json.NewEncoder(os.Stdout).Encode(out)
}

// dieWithParent has the kernel kill a child when the thread that started it is gone.
func dieWithParent(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
