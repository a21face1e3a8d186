package role

import (
	"context"
	"fmt"

	"treeline/internal/codeworker"
	"treeline/internal/sandbox"
)

// CodeWorker runs one code worker until ctx ends and what it has in hand is settled, at most for own.Grace; what still
// runs then is handed back. It gives a *sandbox.Unavailable where the driver cannot seal a run on this machine. The driver
// stays the caller's to close.
func CodeWorker(ctx context.Context, cfg Config, own codeworker.Config, driver sandbox.Driver) error {
	report, err := driver.Probe(ctx)
	if err != nil {
		return fmt.Errorf("start the code worker: %w", err)
	}
	logReport(cfg, report)
	b, err := cfg.open(ctx, "codeworker")
	if err != nil {
		return err
	}
	defer b.close()
	w := codeworker.New(b.ledger, b.queue, b.teller, driver, codeworker.NoInputs{}, own, cfg.Log)
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
