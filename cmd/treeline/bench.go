package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"

	"treeline/internal/bench"
	"treeline/internal/fleet"
	"treeline/internal/role"
)

type benchCommand struct {
	Edit benchEdit `cmd:"" help:"One edit over HTTP through the fleet, beside its floor."`
}

type benchEdit struct {
	N int `help:"How many of each." default:"1000"`
}

// Run starts a fleet of its own in a temporary folder and prints the table.
func (b *benchEdit) Run(ctx context.Context, log zerolog.Logger) error {
	return withFleet(ctx, log, func(ctx context.Context, t bench.Target) error {
		rows, err := bench.Edit(ctx, t, b.N, os.Stderr)
		if err != nil {
			return err
		}
		bench.Print(os.Stdout, rows)
		return nil
	})
}

// withFleet runs fn beside a fleet of its own, which ends with it.
func withFleet(ctx context.Context, log zerolog.Logger, fn func(context.Context, bench.Target) error) error {
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
