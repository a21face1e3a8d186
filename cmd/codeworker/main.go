// Command codeworker runs the code of run_code calls, each in a sandbox of its own.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/alecthomas/kong"
	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"

	"treeline/internal/codeworker"
	"treeline/internal/role"
	"treeline/internal/sandbox/local"
)

type cli struct {
	DatabaseURL     string        `help:"The database; it is migrated already." required:"" env:"TREELINE_DATABASE_URL" placeholder:"URL"`
	NATSURL         string        `name:"nats-url" help:"The NATS server." required:"" env:"TREELINE_NATS_URL" placeholder:"URL"`
	NATSCredentials string        `name:"nats-credentials" help:"File with NATS credentials." env:"TREELINE_NATS_CREDENTIALS" placeholder:"FILE"`
	Sandbox         string        `help:"What code is sealed by." default:"local" enum:"local" env:"TREELINE_SANDBOX"`
	Python          string        `help:"The interpreter (default: the python3 that the sandbox's user can run)." env:"TREELINE_PYTHON" placeholder:"FILE"`
	Slots           int           `help:"How many runs go on at a time, unless memory allows fewer." default:"4" env:"TREELINE_CODE_SLOTS" placeholder:"N"`
	MemoryMiB       int64         `name:"memory-mib" help:"Memory of all runs together, in MiB (default: what is available)." env:"TREELINE_CODE_MEMORY_MIB" placeholder:"MIB"`
	Grace           time.Duration `help:"How long runs may go on once the worker is to stop; then they are handed back." default:"20s" env:"TREELINE_GRACE" placeholder:"TIME"`
	LogLevel        string        `help:"Least level of what is logged: debug, info, warn or error." default:"info" enum:"debug,info,warn,error" env:"TREELINE_LOG_LEVEL"`
}

func main() {
	local.MaybeChild()
	var c cli
	kong.Parse(&c, kong.Name("codeworker"), kong.Description("Runs the code of calls in sandboxes, until it is told to stop."),
		kong.UsageOnError())
	if err := c.run(); err != nil {
		fmt.Fprintln(os.Stderr, "codeworker:", err)
		os.Exit(1)
	}
}

func (c *cli) run() (err error) {
	if c.Slots < 1 || c.MemoryMiB < 0 || c.Grace < 0 {
		return errors.New("slots must be 1 or more, memory and grace 0 or more")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	driver, err := role.OpenSandbox(role.SandboxConfig{Driver: c.Sandbox, Python: c.Python})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, driver.Close()) }()
	own := codeworker.DefaultConfig()
	own.Slots, own.MemoryBytes, own.Grace = c.Slots, c.MemoryMiB<<20, c.Grace
	return role.CodeWorker(ctx, c.config(), own, driver)
}

func (c *cli) config() role.Config {
	level, _ := zerolog.ParseLevel(c.LogLevel) // the parser has checked it
	cfg := role.DefaultConfig()
	cfg.DatabaseURL, cfg.NATSURL = c.DatabaseURL, c.NATSURL
	cfg.Log = zerolog.New(os.Stderr).Level(level).With().Timestamp().Logger()
	if c.NATSCredentials != "" {
		cfg.NATSOptions = append(cfg.NATSOptions, nats.UserCredentials(c.NATSCredentials))
	}
	return cfg
}
