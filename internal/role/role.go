// Package role wires the three roles of the fleet from their parts: the dispatcher, the file worker and the code worker.
// The programs in cmd parse their configuration and run one of these, or all of them.
package role

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"

	"treeline/internal/ledger"
	"treeline/internal/queue"
	"treeline/internal/store"
)

// Config is what every role needs.
type Config struct {
	// DatabaseURL reaches a migrated database. It holds a password and is never logged.
	DatabaseURL string
	// Connections bounds the role's pool.
	Connections int
	// Pool, where it is set, takes the place of a pool of the role's own: roles of one process share their connections, and
	// whoever set it closes it.
	Pool *pgxpool.Pool
	// NATSURL reaches the queue; NATSOptions are added to the connection's.
	NATSURL     string
	NATSOptions []nats.Option
	Ledger      ledger.Config
	Queue       queue.Config
	// SweepEvery is the time between sweeps.
	SweepEvery time.Duration
	// Grace bounds how long a role may take to end what it has in hand.
	Grace time.Duration
	Log   zerolog.Logger
}

// DefaultConfig gives the defaults of everything but the addresses.
func DefaultConfig() Config {
	return Config{Connections: 24, Ledger: ledger.DefaultConfig(), Queue: queue.DefaultConfig(), SweepEvery: 2 * time.Second,
		Grace: 20 * time.Second, Log: zerolog.Nop()}
}

// base is what a role stands on, and closes last.
type base struct {
	pool   *pgxpool.Pool
	shared bool // the pool is not this role's to close
	ledger *ledger.Ledger
	queue  *queue.Queue
	teller *ledger.Teller

	endTelling context.CancelFunc
	telling    sync.WaitGroup
	log        zerolog.Logger
}

// open reaches the database and the queue, waiting for both with growing pauses until ctx ends.
func (c Config) open(ctx context.Context, name string) (*base, error) {
	b := &base{log: c.Log, pool: c.Pool, shared: c.Pool != nil}
	if !b.shared {
		var err error
		if b.pool, err = c.OpenPool(ctx, c.Connections); err != nil {
			return nil, err
		}
	}
	var err error
	b.ledger = ledger.New(b.pool, c.Ledger)
	// The queue lives until the role has drained, so it must not end with ctx.
	live, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, cancel)
	b.queue, err = queue.Connect(live, queue.Options{URL: c.NATSURL, Name: name, Extra: c.NATSOptions}, c.Queue, c.Log)
	stop()
	if err != nil {
		cancel()
		b.closePool()
		return nil, fmt.Errorf("start the %s: %w", name, err)
	}
	b.teller = ledger.NewTeller(b.ledger, b.queue, c.Log)
	var telling context.Context
	telling, b.endTelling = context.WithCancel(context.WithoutCancel(ctx))
	b.telling.Go(func() {
		if err := b.teller.Run(telling); err != nil {
			b.log.Warn().Err(err).Msg("teller ended")
		}
	})
	closeQueue := b.endTelling
	b.endTelling = func() { closeQueue(); cancel() }
	return b, nil
}

func (b *base) close() {
	b.endTelling()
	b.telling.Wait()
	b.queue.Close()
	b.closePool()
}

func (b *base) closePool() {
	if !b.shared {
		b.pool.Close()
	}
}

// OpenPool reaches the database with at most the given number of connections, waiting with growing pauses until ctx ends.
func (c Config) OpenPool(ctx context.Context, connections int) (pool *pgxpool.Pool, err error) {
	wait := backoff.NewExponentialBackOff(backoff.WithInitialInterval(50*time.Millisecond), backoff.WithMaxInterval(2*time.Second),
		backoff.WithMaxElapsedTime(0))
	err = backoff.RetryNotify(func() error {
		var err error
		pool, err = store.Open(ctx, c.DatabaseURL, connections)
		if errors.Is(err, store.ErrURL) {
			return backoff.Permanent(err)
		}
		return err
	}, backoff.WithContext(wait, ctx), func(err error, d time.Duration) {
		c.Log.Warn().Err(err).Dur("again_in", d).Msg("the database is not there yet")
	})
	return pool, err
}

// until runs fn with two ends: stop is closed when ctx ends, and the context that fn gets ends a grace period later.
func until(ctx context.Context, grace time.Duration, fn func(ctx context.Context, stop <-chan struct{}) error) error {
	hard, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	unhook := context.AfterFunc(ctx, func() {
		timer := time.AfterFunc(grace, cancel)
		<-hard.Done()
		timer.Stop()
	})
	defer unhook()
	return fn(hard, ctx.Done())
}
