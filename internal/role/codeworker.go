package role

import (
	"context"
	"fmt"
	"io"

	"treeline/internal/codeworker"
	"treeline/internal/input"
	"treeline/internal/sandbox"
	"treeline/internal/sandbox/local"
)

// SandboxConfig chooses the sandbox that code runs in.
type SandboxConfig struct {
	// Driver is a driver's name; empty for local.
	Driver string
	// Python is the interpreter of the local driver; empty for the one that it finds.
	Python string
	// User is the user and group id that the local driver's sandboxes run as where the worker is root; 0 for its own choice.
	User int
	// Cgroup names the cgroup folders that the local driver may make groups in; empty for none. See local.Options.
	Cgroup string
}

// Sandbox is a driver that is to be closed.
type Sandbox interface {
	sandbox.Driver
	io.Closer
}

// OpenSandbox makes the driver. It starts nothing yet: see sandbox.Driver.Probe.
func OpenSandbox(cfg SandboxConfig) (Sandbox, error) {
	switch cfg.Driver {
	case "", local.Name:
		return local.New(local.Options{Python: cfg.Python, User: cfg.User, Cgroup: cfg.Cgroup})
	}
	return nil, fmt.Errorf("there is no sandbox driver %q: use %s", cfg.Driver, local.Name)
}

// CodeWorker runs one code worker until ctx ends and what it has in hand is settled, at most for own.Grace; what still
// runs then is handed back. It gives a *sandbox.Unavailable where the driver cannot seal a run on this machine. The driver
// stays the caller's to close.
func CodeWorker(ctx context.Context, cfg Config, own codeworker.Config, driver sandbox.Driver) error {
	report, err := driver.Probe(ctx)
	if ctx.Err() != nil {
		return ctx.Err() // told to end meanwhile, which says nothing of the sandbox
	}
	if err != nil {
		return fmt.Errorf("start the code worker: %w", err)
	}
	logReport(cfg, report)
	b, err := cfg.open(ctx, "codeworker")
	if err != nil {
		return err
	}
	defer b.close()
	w := codeworker.New(b.ledger, b.queue, b.teller, driver, input.New(b.pool, cfg.Ledger.Limits), own, cfg.Log)
	cfg.Log.Info().Int("slots", w.Slots()).Msg("code worker takes calls")
	return until(ctx, own.Grace, w.Run)
}

func logReport(cfg Config, r sandbox.Report) {
	cfg.Log.Info().Str("driver", r.Driver).Str("python", r.Python.Path).Str("installed", codeworker.Installed(r)).
		Strs("enforced", r.Enforced).Msg("sandbox")
	for _, gap := range r.Missing {
		cfg.Log.Warn().Str("missing", gap.What).Str("reason", gap.Reason).Str("remedy", gap.Remedy).Msg("sandbox can do without")
	}
}
