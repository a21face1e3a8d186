package role

import (
	"context"

	"treeline/internal/fileworker"
)

// FileWorker runs one file worker until ctx ends and what it has in hand is settled, at most for the grace period.
func FileWorker(ctx context.Context, cfg Config, own fileworker.Config) error {
	b, err := cfg.open(ctx, "fileworker")
	if err != nil {
		return err
	}
	defer b.close()
	w := fileworker.New(b.ledger, b.queue, b.teller, own, cfg.Log)
	cfg.Log.Info().Int("slots", own.Slots).Msg("file worker takes calls")
	return until(ctx, cfg.Grace, w.Run)
}
