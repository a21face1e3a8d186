// Package local is the sandbox driver that needs nothing but a Linux kernel and a Python: it makes namespaces, a minimal
// read-only root, a system call filter and limits itself, with no program beside this binary, which executes itself anew
// for the purpose. See MaybeChild.
//
//	worker ── launcher (an unprivileged user; one a driver) ── init (first of its namespaces; one a session) ── python
//
// The session's files lie on two tmpfs that init makes and whose directories it hands to the worker: one that the program
// writes, bounded in bytes and inodes, one that it only reads. They vanish with the session.
package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"treeline/internal/sandbox"
)

// Name is the driver's name.
const Name = "local"

// defaultUser is the user and group that a root worker's sandboxes run as: the one that owns nothing by convention.
const defaultUser = 65534

// startTimeout bounds the making of a session.
const startTimeout = 20 * time.Second

// Options configure the driver. The zero value is good.
type Options struct {
	// Python is the interpreter to use; empty for the one behind python3 that the sandbox's user can run.
	Python string
	// User is the user and group id that sandboxes of a root worker run as; 0 for 65534. Others run as themselves.
	User int
	// Cgroup names cgroup folders that this worker may make groups in, separated by commas: one of version 2 with no
	// processes of its own, or one of each controller, memory and pids, of version 1. Empty for none; the group's memory is
	// then watched by init alone.
	Cgroup string
}

// Driver is the local driver. Close it to end its launcher.
type Driver struct {
	options Options
	filter  []byte

	mu       sync.Mutex // guards launcher and runtime, and one exchange with the launcher at a time
	launcher *launcherProcess
	runtime  *runtimeFiles
	fonts    map[string][]byte // matplotlib's lists of fonts by name; nil until Probe has made them
	sessions int               // counts, to name their cgroups
	closed   bool
}

var _ sandbox.Driver = (*Driver)(nil)

// New makes a driver. It starts nothing: see Probe.
func New(options Options) (*Driver, error) {
	if options.User == 0 {
		options.User = defaultUser
	}
	filter, err := assembleFilter()
	if err != nil {
		return nil, err
	}
	return &Driver{options: options, filter: filter}, nil
}

// Name gives "local".
func (d *Driver) Name() string { return Name }

// Close ends the launcher, and with it what still runs. Sessions must still be closed.
func (d *Driver) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	return d.dropLauncher()
}

// Start makes a session. Errors: *sandbox.Unavailable where this machine cannot seal a run.
func (d *Driver) Start(ctx context.Context, spec sandbox.Spec) (sandbox.Session, error) {
	return d.start(ctx, spec)
}

func (d *Driver) start(ctx context.Context, spec sandbox.Spec) (*Session, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s := &Session{limits: spec.Limits.WithDefaults(), gone: make(chan struct{}), stopped: make(chan struct{})}
	err := d.open(ctx, s)
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (d *Driver) open(ctx context.Context, s *Session) error {
	ends, err := s.openPipes(d.options.User)
	if err != nil {
		return err
	}
	defer closeAll(ends)
	if err := d.launch(ctx, s); err != nil {
		return err
	}
	d.mu.Lock()
	runtime, fonts := d.runtime, d.fonts
	d.sessions++
	name := fmt.Sprintf("treeline-%d-%d", os.Getpid(), d.sessions)
	d.mu.Unlock()
	if s.group, err = newCgroup(cgroupFolders(d.options.Cgroup), name, s.limits); err != nil {
		return unavailableCgroup(err)
	}
	if err := s.group.enter(s.pid); err != nil {
		return unavailableCgroup(err)
	}
	if err := s.prepare(ctx, runtime, d.filter, ends); err != nil {
		return err
	}
	return s.put.fonts(fonts)
}

// launch has the launcher make the session's init. A launcher that died is replaced, once.
func (d *Driver) launch(ctx context.Context, s *Session) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for attempt := 0; ; attempt++ {
		err := d.ready(ctx)
		if err == nil {
			if err = s.adopt(d.launcher.start(ctx)); err == nil {
				return nil
			}
		}
		var refused *stepError
		if errors.As(err, &refused) {
			return unavailable(err)
		}
		err = errors.Join(err, d.dropLauncher())
		if attempt > 0 || ctx.Err() != nil || d.closed {
			return fmt.Errorf("start a sandbox: %w", err)
		}
	}
}

// ready makes sure that there is a launcher and that the interpreter is known.
func (d *Driver) ready(ctx context.Context) error {
	if d.closed {
		return errors.New("the driver is closed")
	}
	if d.launcher == nil {
		l, err := newLauncherProcess(d.options.User)
		if err != nil {
			return asStep(launcherStep, err)
		}
		d.launcher = l
	}
	if d.runtime == nil {
		runtime, err := d.launcher.find(ctx, d.candidates())
		if err != nil {
			return err
		}
		d.runtime = runtime
	}
	return nil
}

func (d *Driver) dropLauncher() error {
	if d.launcher == nil {
		return nil
	}
	l := d.launcher
	d.launcher = nil
	return l.close()
}

// candidates lists the interpreters to try: the one asked for alone, else every python3 on the path and the usual places.
func (d *Driver) candidates() []string {
	if d.options.Python != "" {
		return []string{d.options.Python}
	}
	var all []string
	for _, folder := range filepath.SplitList(os.Getenv("PATH")) {
		if filepath.IsAbs(folder) {
			all = append(all, filepath.Join(folder, "python3"))
		}
	}
	all = append(all, "/usr/local/bin/python3", "/usr/bin/python3")
	var out []string
	for _, c := range all {
		if _, err := os.Stat(c); err == nil && !slices.Contains(out, c) {
			out = append(out, c)
		}
	}
	if len(out) == 0 {
		out = append(out, "/usr/bin/python3")
	}
	return out
}
