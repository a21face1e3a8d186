package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/jackc/pgx/v5"
)

// LongRun has one run go on for nearly as long as it may, and says at intervals whether its worker keeps the lease. The
// error says what went otherwise than it should: another attempt, a lease that ran out, an outcome that is not ok.
func LongRun(ctx context.Context, t Target, seconds int, out io.Writer) error {
	c, err := newTurn(ctx, t, "run_code", "read_file")
	if err != nil {
		return err
	}
	db, err := pgx.Connect(ctx, t.DatabaseURL)
	if err != nil {
		return fmt.Errorf("look at the ledger: %w", err)
	}
	defer func() { _ = db.Close(context.WithoutCancel(ctx)) }()
	began := time.Now()
	code := fmt.Sprintf("import time\nbegan = time.monotonic()\nwhile time.monotonic() < began + %d:\n    open('workspace/beats.txt', 'a').write('beat\\n')\n"+
		"    time.sleep(1)\nprint('ran', round(time.monotonic() - began))", max(1, seconds-3))
	id, err := c.begin(ctx, "run_code", map[string]any{"code": code, "timeoutSeconds": seconds})
	if err != nil {
		return err
	}
	watching, stop := context.WithCancel(ctx)
	watched := make(chan error, 1)
	go func() { watched <- watchLease(watching, db, id, began, out) }()
	a, err := c.ended(ctx, id)
	stop()
	if err = errors.Join(err, <-watched); err != nil {
		return err
	}
	fmt.Fprintf(out, "%5.0f s  ended: status %s, code %q, attempt %d, created %v, printed %q\n", time.Since(began).Seconds(), a.Status, a.Code, a.Attempt,
		a.Changes.Created, a.Data.Stdout)
	if a.Status != "ok" || a.Attempt != 1 || len(a.Changes.Created) != 1 {
		return errors.New("the run did not end as it should: ok, at its first attempt, with one file")
	}
	_, err = c.call(ctx, "read_file", map[string]string{"path": "beats.txt"})
	return err
}

// watchLease tells every 30 s, and looks every second, whether the call's lease is good.
func watchLease(ctx context.Context, db *pgx.Conn, id string, began time.Time, out io.Writer) error {
	least := time.Duration(1<<63 - 1)
	for n := 0; ; n++ {
		pause(ctx, time.Second)
		if ctx.Err() != nil {
			fmt.Fprintf(out, "         the least that was left of the lease: %.1f s\n", least.Seconds())
			return nil
		}
		var state string
		var attempt int
		var left *float64
		err := db.QueryRow(context.WithoutCancel(ctx), `SELECT state, attempt, extract(epoch FROM lease_until - clock_timestamp())::float8
			FROM calls WHERE call_id = $1`, id).Scan(&state, &attempt, &left)
		if err != nil {
			return fmt.Errorf("look at the lease: %w", err)
		}
		if left == nil {
			continue // not claimed yet, or done
		}
		leaves := time.Duration(*left * float64(time.Second))
		least = min(least, leaves)
		if n%30 == 0 {
			fmt.Fprintf(out, "%5.0f s  %s, attempt %d, lease good for %.1f s\n", time.Since(began).Seconds(), state, attempt, leaves.Seconds())
		}
		if leaves <= 0 || attempt != 1 {
			return fmt.Errorf("after %s the call is %s at attempt %d and its lease is good for %s", time.Since(began).Round(time.Second), state, attempt, leaves)
		}
	}
}
