package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"

	"treeline/internal/bench"
	"treeline/internal/codeworker"
	"treeline/internal/fleet"
	"treeline/internal/role"
)

type benchCommand struct {
	Edit    benchEdit    `cmd:"" help:"One edit over HTTP through the fleet, beside its floor."`
	Sandbox benchSandbox `cmd:"" help:"A sealed run beside a bare one, many files beside few, much output beside little."`
	Runs    benchRuns    `cmd:"" help:"Other conversations' runs and file calls while one runs for long, beside the same while none does."`
	LongRun benchLongRun `cmd:"" help:"One run for nearly as long as one may last, and whether its worker keeps the lease."`
}

type benchEdit struct {
	N int `help:"How many of each." default:"1000"`
}

// Run starts a fleet of its own in a temporary folder and prints the table.
func (b *benchEdit) Run(ctx context.Context, log zerolog.Logger) error {
	return withFleet(ctx, log, 0, func(ctx context.Context, t bench.Target) error {
		rows, err := bench.Edit(ctx, t, b.N, os.Stderr)
		if err != nil {
			return err
		}
		bench.Print(os.Stdout, rows)
		return nil
	})
}

type benchSandbox struct {
	N       int    `help:"How many of each." default:"50"`
	Sandbox string `help:"What code is sealed by." default:"local" enum:"local" env:"TREELINE_SANDBOX" placeholder:"NAME"`
	Python  string `help:"The interpreter." env:"TREELINE_PYTHON" placeholder:"FILE"`
}

// Run prints the table.
func (b *benchSandbox) Run(ctx context.Context) (err error) {
	driver, err := role.OpenSandbox(role.SandboxConfig{Driver: b.Sandbox, Python: b.Python})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, driver.Close()) }()
	return bench.Sandbox(ctx, driver, b.N, os.Stdout, os.Stderr)
}

type benchRuns struct {
	N int `help:"How many of each." default:"50"`
}

// Run starts a fleet of its own, with two code workers of one slot each, and prints the table.
func (b *benchRuns) Run(ctx context.Context, log zerolog.Logger) error {
	return withFleet(ctx, log, 2, func(ctx context.Context, t bench.Target) error {
		rows, err := bench.Runs(ctx, t, b.N, os.Stderr)
		if err != nil {
			return err
		}
		bench.Print(os.Stdout, rows)
		return nil
	})
}

type benchLongRun struct {
	Seconds int `help:"How long the run may take." default:"600"`
}

// Run starts a fleet of its own, with the product's lease, and tells how the run goes.
func (b *benchLongRun) Run(ctx context.Context, log zerolog.Logger) error {
	return withFleet(ctx, log, 1, func(ctx context.Context, t bench.Target) error {
		return bench.LongRun(ctx, t, b.Seconds, os.Stdout)
	})
}

// withFleet runs fn beside a fleet of its own, which ends with it. Its code workers have one slot each.
func withFleet(ctx context.Context, log zerolog.Logger, codeWorkers int, fn func(context.Context, bench.Target) error) error {
	dir, err := temporaryData()
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type up struct {
		addr    string
		servers fleet.Servers
	}
	ready, ended := make(chan up, 1), make(chan error, 1)
	cfg := fleet.Config{Data: dir, Listen: "127.0.0.1:0", PortalKey: "bench-key", FileWorkers: 1, Role: role.DefaultConfig(), Log: log.Level(zerolog.WarnLevel)}
	cfg.CodeWorkers, cfg.Code = codeWorkers, codeworker.DefaultConfig()
	cfg.Code.Slots = 1
	var servers fleet.Servers
	cfg.Started = func(s fleet.Servers) { servers = s }
	cfg.Ready = func(addr string) { ready <- up{addr, servers} }
	go func() { ended <- fleet.Run(ctx, cfg) }()
	select {
	case err := <-ended:
		return errors.Join(errors.New("the fleet did not start"), err)
	case u := <-ready:
		nc, err := nats.Connect(u.servers.NATSURL, u.servers.NATSOptions...)
		if err != nil {
			return fmt.Errorf("reach the queue: %w", err)
		}
		err = fn(ctx, bench.Target{URL: "http://" + u.addr, PortalKey: cfg.PortalKey, DatabaseURL: u.servers.DatabaseURL, NATS: nc})
		nc.Close()
		cancel()
		return errors.Join(err, <-ended)
	}
}

// temporaryData makes a folder whose parents the database's own user can pass through.
func temporaryData() (string, error) {
	dir, err := os.MkdirTemp("", "treeline-")
	if err != nil {
		return "", fmt.Errorf("make a temporary data folder: %w", err)
	}
	return dir, os.Chmod(dir, 0o711)
}
