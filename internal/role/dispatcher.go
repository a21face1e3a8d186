package role

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"golang.org/x/sync/errgroup"

	"treeline/internal/catalogue"
	"treeline/internal/dispatch"
	"treeline/internal/dispatch/httpapi"
	"treeline/internal/dispatch/immediate"
	"treeline/internal/dispatch/natsapi"
	"treeline/internal/ledger"
	"treeline/internal/queue"
	"treeline/internal/store"
)

// DispatcherConfig is what a dispatcher needs beyond Config.
type DispatcherConfig struct {
	// Listen is host:port; port 0 has the system choose.
	Listen       string
	AllowedHosts []string
	// PortalKey and ViewerKey may each hold two keys, for rotation.
	PortalKey, ViewerKey string
	// Installed says what the sandboxes' Python has, for the description of run_code.
	Installed string
	// Notice is how much of the grace period it goes on taking HTTP requests while it says that it is not ready; never more
	// than half.
	Notice time.Duration
	// Ready is told the address once the dispatcher serves.
	Ready func(addr string)
}

// Dispatcher runs one dispatcher until ctx ends and what it has in hand is answered, at most for the grace period.
func Dispatcher(ctx context.Context, cfg Config, own DispatcherConfig) error {
	keys, err := httpapi.ParseKeys(own.PortalKey, own.ViewerKey)
	if err != nil {
		return err
	}
	tools, err := catalogue.Load()
	if err != nil {
		return fmt.Errorf("load the catalogue: %w", err)
	}
	tools = tools.WithLimits(cfg.Ledger.Limits)
	if own.Installed != "" {
		tools = tools.WithInstalled(own.Installed)
	}
	b, err := cfg.open(ctx, "dispatcher")
	if err != nil {
		return err
	}
	defer b.close()
	sweeper := ledger.NewSweeper(b.ledger, b.queue, b.teller, cfg.Log)
	err = b.queue.OnSetUp(ctx, func(ctx context.Context, s queue.StreamState) error {
		return sweeper.RetellLost(ctx, s.Created, s.LastSeq)
	})
	if err != nil {
		return err
	}
	d := dispatch.New(b.ledger, b.queue, b.teller, sweeper, tools, immediate.Answers(b.pool, cfg.Ledger.Limits), cfg.Log)
	ln, err := net.Listen("tcp", own.Listen)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	server, err := httpapi.New(b.httpConfig(cfg, own, d, keys, ln.Addr().String()))
	if err != nil {
		return errors.Join(err, ln.Close())
	}
	var g errgroup.Group
	ctx, cancel := context.WithCancel(ctx)
	actor := func(run func(context.Context) error) {
		g.Go(func() error { defer cancel(); return run(ctx) })
	}
	actor(func(ctx context.Context) error { return sweeper.Run(ctx, cfg.SweepEvery) })
	actor(natsapi.New(b.queue.Conn(), d, natsapi.DefaultConfig(), cfg.Log).Run)
	actor(func(ctx context.Context) error { return server.Serve(ctx, ln) })
	cfg.Log.Info().Str("address", ln.Addr().String()).Msg("dispatcher serves")
	if own.Ready != nil {
		own.Ready(ln.Addr().String())
	}
	return g.Wait()
}

func (b *base) httpConfig(cfg Config, own DispatcherConfig, d *dispatch.Dispatcher, keys httpapi.Keys, addr string) httpapi.Config {
	metrics := prometheus.NewRegistry()
	metrics.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	t := httpapi.DefaultTimeouts()
	t.Grace, t.Notice = cfg.Grace, own.Notice
	return httpapi.Config{
		Dispatcher: d, Library: store.NewPortal(b.ledger.Queries()), Stores: httpapi.NewStores(b.pool, cfg.Ledger.Limits),
		Keys: keys, Limits: cfg.Ledger.Limits, Listen: addr,
		AllowedHosts: append([]string{own.Listen}, own.AllowedHosts...), Timeouts: t, Ready: b.ready, Metrics: metrics, Log: cfg.Log,
	}
}

// readyWithin bounds the look at whether a role can work.
const readyWithin = 2 * time.Second

// ready says why the role cannot work now.
func (b *base) ready() error {
	ctx, cancel := context.WithTimeout(context.Background(), readyWithin)
	defer cancel()
	if err := b.pool.Ping(ctx); err != nil {
		return errors.New("cut off from the database")
	}
	return b.queue.Healthy()
}
