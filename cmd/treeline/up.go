package main

import (
	"context"
	"fmt"

	"github.com/rs/zerolog"

	"treeline/internal/devenv"
	"treeline/internal/fleet"
	"treeline/internal/role"
	"treeline/internal/store"
)

type upCommand struct {
	Listen        string   `help:"Address of HTTP; port 0 has the system choose." default:"127.0.0.1:8080" env:"TREELINE_LISTEN"`
	Data          string   `help:"Folder that holds everything (default: below the user's data folder)." env:"TREELINE_DATA" placeholder:"DIR"`
	PortalKey     string   `help:"The portal's key, for trials: others can see a command line." env:"TREELINE_PORTAL_KEY" placeholder:"KEY"`
	PortalKeyFile string   `help:"File with the portal's key." env:"TREELINE_PORTAL_KEY_FILE" placeholder:"FILE"`
	ViewerKey     string   `help:"A key that only reads." env:"TREELINE_VIEWER_KEY" placeholder:"KEY"`
	AllowedHosts  []string `help:"Further names under which HTTP may be reached." env:"TREELINE_ALLOWED_HOSTS" placeholder:"HOST"`
	FileWorkers   int      `help:"How many file workers." default:"1" env:"TREELINE_FILE_WORKERS" placeholder:"N"`
	CodeWorkers   int      `help:"How many code workers." default:"1" env:"TREELINE_CODE_WORKERS" placeholder:"N"`
	DatabaseURL   string   `help:"A Postgres that runs already, instead of a private one." env:"TREELINE_DATABASE_URL" placeholder:"URL"`
	NATSURL       string   `name:"nats-url" help:"A NATS server that runs already, instead of the embedded one." env:"TREELINE_NATS_URL" placeholder:"URL"`
	NATSPort      int      `name:"nats-port" help:"Port of the embedded NATS server; 0 has the system choose." env:"TREELINE_NATS_PORT" placeholder:"PORT"`
	Demo          bool     `help:"Play a short conversation through the fleet, then stop." env:"TREELINE_DEMO"`
}

// Run runs the fleet until a signal.
func (u *upCommand) Run(ctx context.Context, log zerolog.Logger) error {
	cfg, err := u.config(log)
	if err != nil {
		return err
	}
	if u.Demo {
		return demo(ctx, cfg)
	}
	cfg.Ready = func(addr string) { fmt.Printf("ready http://%s\n", addr) }
	return fleet.Run(ctx, cfg)
}

func (u *upCommand) config(log zerolog.Logger) (fleet.Config, error) {
	data := u.Data
	if data == "" {
		var err error
		if data, err = devenv.DefaultFolder(); err != nil {
			return fleet.Config{}, err
		}
	}
	return fleet.Config{
		Data: data, Listen: u.Listen, AllowedHosts: u.AllowedHosts, PortalKey: u.PortalKey, PortalKeyFile: u.PortalKeyFile,
		ViewerKey: u.ViewerKey, FileWorkers: u.FileWorkers, CodeWorkers: u.CodeWorkers, DatabaseURL: u.DatabaseURL, NATSURL: u.NATSURL,
		NATSPort: u.NATSPort, Role: role.DefaultConfig(), Log: log,
	}, nil
}

type migrateCommand struct {
	DatabaseURL string `help:"The database." required:"" env:"TREELINE_DATABASE_URL" placeholder:"URL"`
}

// Run migrates the database; several may run at once.
func (m *migrateCommand) Run(ctx context.Context, log zerolog.Logger) error {
	if err := store.Migrate(ctx, m.DatabaseURL); err != nil {
		return err
	}
	log.Info().Msg("the database has the present schema")
	return nil
}
