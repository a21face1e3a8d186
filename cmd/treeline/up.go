package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/rs/zerolog"

	"treeline/internal/devenv"
	"treeline/internal/fleet"
	"treeline/internal/role"
	"treeline/internal/store"
)

type upCommand struct {
	Listen       string   `help:"Address of HTTP; port 0 has the system choose." default:"127.0.0.1:8080" env:"TREELINE_LISTEN" placeholder:"HOST:PORT"`
	Data         string   `help:"Folder that holds everything (default: treeline in the user's data folder; for root /var/lib/treeline)." env:"TREELINE_DATA" placeholder:"DIR"`
	AllowedHosts []string `help:"Further names under which HTTP may be reached, split by commas." env:"TREELINE_ALLOWED_HOSTS" placeholder:"HOST"`
	role.Keys
	FileWorkers int    `help:"How many file workers." default:"1" env:"TREELINE_FILE_WORKERS" placeholder:"N"`
	CodeWorkers *int   `help:"How many code workers (default: 1 where this machine can seal code, else none)." env:"TREELINE_CODE_WORKERS" placeholder:"N"`
	DatabaseURL string `help:"A Postgres that runs already, instead of a private one." env:"TREELINE_DATABASE_URL" placeholder:"URL"`
	NATSURL     string `name:"nats-url" help:"A NATS server that runs already, instead of the embedded one." env:"TREELINE_NATS_URL" placeholder:"URL"`
	NATSPort    int    `name:"nats-port" help:"Port of the embedded NATS server; 0 has the system choose." default:"0" env:"TREELINE_NATS_PORT" placeholder:"PORT"`
	Demo        bool   `help:"Play a short conversation through a fleet, in a folder of its own unless --data names one, then stop."`
	role.FileWorkerSettings
	role.CodeWorkerSettings
	role.Settings
}

// Help is shown below the flags.
func (u *upCommand) Help() string {
	return `Prints "ready http://HOST:PORT" on standard output once it serves, and logs on standard error. SIGTERM and SIGINT stop it; started
again on the same folder it goes on where it was. Without a portal's key one is made and kept in the data folder, as portal-key.`
}

// Run runs the fleet until a signal.
func (u *upCommand) Run(ctx context.Context, log zerolog.Logger, out io.Writer) (err error) {
	cfg, err := u.config(log)
	if err != nil {
		return &role.SettingError{Err: err}
	}
	if !u.Demo {
		cfg.Ready = func(addr string) { fmt.Fprintf(out, "ready http://%s\n", addr) }
		return fleet.Run(ctx, cfg)
	}
	cfg.Listen = "127.0.0.1:0" // beside whatever runs
	if u.Data == "" {
		if cfg.Data, err = temporaryFolder(); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(cfg.Data)) }()
	}
	return demo(ctx, cfg, out)
}

func (u *upCommand) config(log zerolog.Logger) (fleet.Config, error) {
	data := u.Data
	var err error
	if data == "" {
		if data, err = devenv.DefaultFolder(); err != nil {
			return fleet.Config{}, err
		}
	}
	cfg := fleet.Config{
		Data: data, Listen: u.Listen, AllowedHosts: u.AllowedHosts, PortalKey: u.PortalKey, PortalKeyFile: u.PortalKeyFile,
		ViewerKey: u.ViewerKey, FileWorkers: u.FileWorkers, CodeWorkers: 1, CodeOptional: u.CodeWorkers == nil, DatabaseURL: u.DatabaseURL,
		NATSURL: u.NATSURL, NATSPort: u.NATSPort, Sandbox: u.SandboxConfig(), Log: log,
	}
	if u.CodeWorkers != nil {
		cfg.CodeWorkers = *u.CodeWorkers
	}
	if cfg.FileWorkers < 0 || cfg.CodeWorkers < 0 {
		return fleet.Config{}, errors.New("there cannot be fewer than 0 workers")
	}
	if err := errors.Join(role.CheckURL("TREELINE_DATABASE_URL", u.DatabaseURL), role.CheckURL("TREELINE_NATS_URL", u.NATSURL)); err != nil {
		return fleet.Config{}, err
	}
	if cfg.Role, err = u.Settings.Config(); err != nil {
		return fleet.Config{}, err
	}
	if cfg.File, err = u.FileWorkerSettings.Config(); err != nil {
		return fleet.Config{}, err
	}
	if cfg.Code, err = u.CodeWorkerSettings.Config(cfg.Role); err != nil {
		return fleet.Config{}, err
	}
	cfg.Code.MemoryBytes /= int64(max(1, cfg.CodeWorkers)) // they share it
	return cfg, nil
}

type migrateCommand struct {
	DatabaseURL string `help:"The database." required:"" env:"TREELINE_DATABASE_URL" placeholder:"URL"`
}

// Run migrates the database; several may run at once.
func (m *migrateCommand) Run(ctx context.Context, log zerolog.Logger) error {
	if err := role.CheckURL("TREELINE_DATABASE_URL", m.DatabaseURL); err != nil {
		return &role.SettingError{Err: err}
	}
	if err := store.Migrate(ctx, m.DatabaseURL); err != nil {
		return err
	}
	log.Info().Msg("the database has the present schema")
	return nil
}
