// Package fleet runs the whole of Treeline in one process over one data folder: an embedded NATS server, a private
// Postgres, a dispatcher, file workers and code workers.
package fleet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"treeline/internal/codeworker"
	"treeline/internal/devenv"
	"treeline/internal/fileworker"
	"treeline/internal/role"
	"treeline/internal/sandbox"
	"treeline/internal/store"
)

// Config says what to run.
type Config struct {
	// Data is the folder that holds everything.
	Data string
	// Listen is host:port of HTTP.
	Listen       string
	AllowedHosts []string
	// PortalKey is used as it is; else the key in PortalKeyFile; else one that is made and kept in the data folder.
	PortalKey, PortalKeyFile, ViewerKey string
	FileWorkers, CodeWorkers            int
	// DatabaseURL and NATSURL name servers that run already, in place of the private ones.
	DatabaseURL, NATSURL string
	// NATSPort is the embedded server's; 0 has the system choose.
	NATSPort int
	Role     role.Config
	// File is of each file worker; zero for the defaults.
	File fileworker.Config
	// Sandbox is where code runs, and Code of each code worker.
	Sandbox role.SandboxConfig
	Code    codeworker.Config
	// CodeOptional has a fleet go on without code workers, and say so, where this machine cannot seal code.
	CodeOptional bool
	Log          zerolog.Logger
	// Started is told of the servers once they run, before any role does.
	Started func(Servers)
	// Ready is told the address once everything serves.
	Ready func(addr string)
}

// Servers are the database and the queue below a fleet. The URLs hold passwords.
type Servers struct {
	DatabaseURL, NATSURL string
	NATSOptions          []nats.Option
}

// orchestratorURL is the file, in the data folder, with the URL for orchestrators of the embedded NATS server.
const orchestratorURL = "orchestrator-nats-url"

// Fleet is a fleet that runs.
type Fleet struct {
	cfg      Config
	folder   *devenv.Folder
	postgres *devenv.Postgres
	nats     *devenv.NATS
}

// Run starts everything, runs until ctx ends or a part fails, and stops in the reverse order: first what takes calls, then
// the servers. It gives a *devenv.FolderInUseError where the folder is in use.
func Run(ctx context.Context, cfg Config) (err error) {
	if cfg.File == (fileworker.Config{}) {
		cfg.File = fileworker.DefaultConfig()
	}
	f := &Fleet{cfg: cfg}
	if f.folder, err = devenv.OpenFolder(cfg.Data); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.folder.Close()) }()
	key, err := f.portalKey()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.stopServers()) }()
	if err := f.startServers(ctx); err != nil {
		return err
	}
	if err := store.Migrate(ctx, f.cfg.Role.DatabaseURL); err != nil {
		return err
	}
	if f.cfg.Started != nil {
		f.cfg.Started(Servers{f.cfg.Role.DatabaseURL, f.cfg.Role.NATSURL, f.cfg.Role.NATSOptions})
	}
	return f.runRoles(ctx, key)
}

func (f *Fleet) startServers(ctx context.Context) error {
	var g errgroup.Group
	f.cfg.Role.DatabaseURL, f.cfg.Role.NATSURL = f.cfg.DatabaseURL, f.cfg.NATSURL
	if f.cfg.DatabaseURL == "" {
		f.postgres = devenv.NewPostgres(devenv.PostgresConfig{Folder: f.folder.Join("postgres"), Log: f.cfg.Log})
		g.Go(func() error { return f.postgres.Start(ctx) })
	}
	if f.cfg.NATSURL == "" {
		f.nats = devenv.NewNATS(devenv.NATSConfig{Folder: f.folder.Join("nats"), Port: f.cfg.NATSPort, Log: f.cfg.Log})
		g.Go(f.nats.Start)
	}
	if err := g.Wait(); err != nil {
		return err
	}
	if f.postgres != nil {
		f.cfg.Role.DatabaseURL = f.postgres.URL()
	}
	if f.nats != nil {
		f.cfg.Role.NATSURL = f.nats.URL()
		f.cfg.Role.NATSOptions = append([]nats.Option{}, f.nats.InProcess()...)
		if err := f.folder.Keep(orchestratorURL, f.nats.OrchestratorURL()); err != nil {
			return err
		}
		f.cfg.Log.Info().Str("url_file", f.folder.Join(orchestratorURL)).Msg("orchestrators reach NATS by the URL in this file")
	}
	return nil
}

func (f *Fleet) stopServers() error {
	var errs []error
	if f.nats != nil {
		errs = append(errs, f.nats.Stop())
	}
	if f.postgres != nil {
		errs = append(errs, f.postgres.Stop())
	}
	return errors.Join(errs...)
}

// runRoles runs every role until ctx ends; the first that fails stops all.
func (f *Fleet) runRoles(ctx context.Context, key string) (err error) {
	driver, installed, err := f.openSandbox(ctx)
	if err != nil {
		return err
	}
	if driver != nil {
		defer func() { err = errors.Join(err, driver.Close()) }()
	}
	cfg := f.cfg.Role
	cfg.Log = f.cfg.Log
	if cfg.Pool, err = cfg.OpenPool(ctx, cfg.Connections*(1+f.cfg.FileWorkers+f.cfg.CodeWorkers)); err != nil {
		return err
	}
	defer cfg.Pool.Close()
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return f.keepPostgres(ctx) })
	for i := range f.cfg.FileWorkers {
		own := cfg
		own.Log = cfg.Log.With().Int("file_worker", i+1).Logger()
		g.Go(func() error { return role.FileWorker(ctx, own, f.cfg.File) })
	}
	for i := range f.cfg.CodeWorkers {
		own := cfg
		own.Log = cfg.Log.With().Int("code_worker", i+1).Logger()
		g.Go(func() error { return role.CodeWorker(ctx, own, f.cfg.Code, driver) })
	}
	g.Go(func() error {
		return role.Dispatcher(ctx, cfg, role.DispatcherConfig{Listen: f.cfg.Listen, AllowedHosts: f.cfg.AllowedHosts, PortalKey: key,
			ViewerKey: f.cfg.ViewerKey, Installed: installed, Ready: f.cfg.Ready})
	})
	if err = g.Wait(); errors.Is(err, context.Canceled) {
		err = nil
	}
	return err
}

// openSandbox opens the one sandbox driver of all code workers, and says what its Python has. Without code workers there
// is none.
func (f *Fleet) openSandbox(ctx context.Context) (role.Sandbox, string, error) {
	if f.cfg.CodeWorkers == 0 {
		return nil, "", nil
	}
	driver, err := role.OpenSandbox(f.cfg.Sandbox)
	if err != nil {
		return nil, "", err
	}
	report, err := driver.Probe(ctx)
	var unavailable *sandbox.Unavailable
	if errors.As(err, &unavailable) && f.cfg.CodeOptional {
		f.cfg.Log.Warn().Err(err).Msg("no code worker runs: calls of run_code wait until one does")
		f.cfg.CodeWorkers = 0
		return nil, "", driver.Close()
	}
	if err != nil {
		err = fmt.Errorf("code cannot be run sealed here (with no code workers the rest works): %w", err)
		return nil, "", errors.Join(err, driver.Close())
	}
	return driver, codeworker.Installed(report), nil
}

// keepPostgres starts the private Postgres again if it ends by itself, for as long as that helps.
func (f *Fleet) keepPostgres(ctx context.Context) error {
	if f.postgres == nil {
		<-ctx.Done()
		return nil
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-f.postgres.Done():
		}
		if ctx.Err() != nil {
			return nil
		}
		f.cfg.Log.Error().Err(f.postgres.Err()).Msg("the private Postgres ended; it is started again")
		if err := f.postgres.Start(ctx); err != nil && ctx.Err() == nil {
			return fmt.Errorf("start the private Postgres again: %w", err)
		}
		select { // not in a tight loop, should it end at once again
		case <-ctx.Done():
			return nil
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// portalKey gives the key as it was configured, or the one that is kept in the data folder.
func (f *Fleet) portalKey() (string, error) {
	if f.cfg.PortalKey != "" {
		return f.cfg.PortalKey, nil
	}
	if f.cfg.PortalKeyFile != "" {
		b, err := os.ReadFile(f.cfg.PortalKeyFile)
		if err != nil {
			return "", fmt.Errorf("read the portal's key: %w", err)
		}
		return strings.TrimSpace(string(b)), nil
	}
	key, err := f.folder.Secret("portal-key")
	if err != nil {
		return "", err
	}
	f.cfg.Log.Info().Str("file", f.folder.Join("portal-key")).Msg("the portal's key is in this file")
	return key, nil
}
