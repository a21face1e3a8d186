package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// rounds is how often a measurement changes between its two states, so that a machine that gets slower shows in both.
const rounds = 5

// Runs measures what other conversations' runs and file calls take while one conversation's run goes on for long, beside
// what they take when none does, n of each. The fleet has two code workers of one slot each.
func Runs(ctx context.Context, t Target, n int, progress io.Writer) ([]Row, error) {
	long, err := newTurn(ctx, t, "run_code")
	if err != nil {
		return nil, err
	}
	other, err := newTurn(ctx, t, "run_code", "write_file", "read_file")
	if err != nil {
		return nil, err
	}
	const peer = "the same while none goes on"
	run, read := Row{Name: "run_code beside another's long run", Peer: peer, Limit: 1.2}, Row{Name: "read_file beside it", Peer: peer, Limit: 1.2}
	if _, err := other.call(ctx, "write_file", map[string]string{"path": "a.txt", "content": "a\n"}); err != nil {
		return nil, err
	}
	if _, err := other.call(ctx, "run_code", map[string]string{"code": "print(1)"}); err != nil { // a worker's first
		return nil, err
	}
	each := max(1, n/rounds)
	for i := range rounds {
		fmt.Fprintf(progress, "runs beside a long run: round %d of %d\n", i+1, rounds)
		if err := other.both(ctx, each, &run.Others, &read.Others); err != nil {
			return nil, err
		}
		id, err := long.begin(ctx, "run_code", map[string]any{"code": "import time\nprint('up')\ntime.sleep(590)", "timeoutSeconds": 600})
		if err != nil {
			return nil, err
		}
		pause(ctx, 500*time.Millisecond) // it has its slot
		err = other.both(ctx, each, &run.Mine, &read.Mine)
		if err = errors.Join(err, long.cancel(ctx, id)); err != nil {
			return nil, err
		}
		if a, err := long.ended(ctx, id); err != nil || a.Code != "cancelled" {
			return nil, errors.Join(err, fmt.Errorf("the long run ended as %q %s before it was cancelled", a.Status, a.Code))
		}
	}
	return []Row{run, read}, nil
}

func (c *client) both(ctx context.Context, n int, runs, reads *Samples) error {
	for range n {
		if err := timed(runs, func() error { _, err := c.call(ctx, "run_code", map[string]string{"code": "print(1)"}); return err }); err != nil {
			return err
		}
		for range 5 {
			if err := timed(reads, func() error { _, err := c.call(ctx, "read_file", map[string]string{"path": "a.txt"}); return err }); err != nil {
				return err
			}
		}
	}
	return nil
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
