package torture

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/rs/zerolog"
)

const (
	// settleWithin is how long after the last fault every accepted call may take to be done and told: three leases, what
	// the sweeper lets pass, and the time until a half-open link is noticed.
	settleWithin = 60 * time.Second
	// mostBreaches bounds what is reported.
	mostBreaches = 25
)

// Config says how to torture.
type Config struct {
	// Seconds of load and faults, before the fleet is left alone and looked at.
	Seconds       int
	Seed          uint64
	Conversations int
	// CodeWorkers is how many there are; with none, no code is run.
	CodeWorkers int
	// Faults are the kinds to strike with, such as "fileworker-kill"; none are all.
	Faults []string
	// LeastFaults is how many strikes there are, however long that takes.
	LeastFaults int
	Log         zerolog.Logger `json:"-"`
}

// torture is one run.
type torture struct {
	cfg     Config
	rig     *Rig
	client  *Client
	monitor *Monitor
	drivers []*driver

	mu     sync.Mutex
	report Report
	shown  map[string]bool // conversations whose history is in the report

	common []version // of the artifact that all change, as far as they are known
}

// Run tortures a fleet that it starts, and reports. The error means that the torture itself could not be done. Whoever can
// mount does it in a process with mounts of its own, so that none is left whatever is killed; its log goes to standard
// error, of the level of that in cfg.
func Run(ctx context.Context, cfg Config) (Report, error) {
	if os.Geteuid() == 0 {
		if report, err := runApart(ctx, cfg); !errors.Is(err, errors.ErrUnsupported) {
			return report, err
		}
	}
	return runHere(ctx, cfg)
}

func runHere(ctx context.Context, cfg Config) (Report, error) {
	t := &torture{cfg: cfg, shown: map[string]bool{}, report: Report{Seed: cfg.Seed, Conversations: cfg.Conversations,
		Results: map[string]int{}, Faults: map[string]int{}, LeftOut: []string{}, Breaches: []Breach{}}}
	begun := time.Now()
	if err := removeDead(); err != nil {
		return t.report, err
	}
	folder, err := NewFolder()
	if err != nil {
		return t.report, err
	}
	end, err := markRunning(folder)
	if err != nil {
		return t.report, err
	}
	defer func() { _ = end() }() // fails only for a folder that is removed already
	before, err := lookAround()
	if err != nil {
		return t.report, err
	}
	err = t.run(ctx, folder)
	t.report.Seconds = time.Since(begun).Seconds()
	if err != nil {
		return t.report, fmt.Errorf("torture with seed %d (logs in %s): %w", cfg.Seed, folder, err)
	}
	t.checkLeftovers(before, folder)
	if len(t.report.Breaches) > 0 {
		return t.report, nil // the logs stay for a look
	}
	return t.report, os.RemoveAll(folder)
}

func (t *torture) run(ctx context.Context, folder string) (err error) {
	s := QuickSettings()
	s.WorkspaceFiles, s.WorkspaceBytes, s.WaitingCalls = 10, 20<<10, 16
	t.rig, err = NewRig(ctx, RigConfig{Folder: folder, Dispatchers: 2, FileWorkers: 2, CodeWorkers: t.cfg.CodeWorkers, Proxied: true,
		SmallDisk: true, Settings: s, Log: t.cfg.Log})
	if err != nil {
		return err
	}
	t.report.LeftOut = append(t.report.LeftOut, t.rig.LeftOut...)
	defer func() {
		if failed := t.rig.Close(); failed != nil {
			t.breach("leftovers", "", failed.Error())
		}
	}()
	if t.client, err = t.rig.Client(); err != nil {
		return err
	}
	defer t.client.Close()
	if t.monitor, err = t.rig.Monitor(); err != nil {
		return err
	}
	defer t.monitor.Close()
	if err := t.load(ctx); err != nil {
		return err
	}
	return t.check(ctx)
}

// load drives all conversations and strikes meanwhile; it returns once everything is mended and answered.
func (t *torture) load(ctx context.Context) error {
	until := time.Now().Add(time.Duration(t.cfg.Seconds) * time.Second)
	driving, cancel := context.WithCancel(ctx) // ends when what was sent must have been answered
	defer cancel()
	loading, enough := context.WithCancel(ctx) // ends when no more is to be sent
	defer enough()
	if err := t.putCommon(ctx); err != nil {
		return err
	}
	for i := range t.cfg.Conversations {
		t.drivers = append(t.drivers, t.newDriver(i))
	}
	errs := make([]error, len(t.drivers))
	var wg sync.WaitGroup
	for i, d := range t.drivers {
		wg.Go(func() { errs[i] = d.drive(driving, loading) })
	}
	err := t.strike(ctx, until)
	enough()
	mended := time.Now()
	late := time.AfterFunc(settleWithin, cancel)
	wg.Wait()
	late.Stop()
	if err := errors.Join(append(errs, err)...); err != nil {
		return err
	}
	return t.quiet(ctx, mended)
}

// breach notes what must not be, with the conversation's history the first time.
func (t *torture) breach(invariant, conversation, what string) {
	var lines []string
	for _, d := range t.drivers {
		if d.name == conversation {
			lines = d.lines()
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.report.Breaches) >= mostBreaches {
		return
	}
	b := Breach{Invariant: invariant, Conversation: conversation, What: what}
	if !t.shown[conversation] {
		t.shown[conversation], b.History = true, lines
	}
	t.report.Breaches = append(t.report.Breaches, b)
}

func (t *torture) count(n *int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	*n++
}

// struck reports whether there were as many faults as there must be.
func (t *torture) struck() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := 0
	for _, k := range t.report.Faults {
		n += k
	}
	return n >= t.cfg.LeastFaults
}

func (t *torture) fault(kind string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.report.Faults[kind]++
}
