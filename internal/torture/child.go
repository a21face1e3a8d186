package torture

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/rs/zerolog"

	"treeline/internal/codeworker"
	"treeline/internal/devenv"
	"treeline/internal/fileworker"
	"treeline/internal/fleet"
	"treeline/internal/role"
	"treeline/internal/sandbox/local"
)

// childName is the name under which this binary is executed again as one process of a fleet.
const childName = "treeline-torture-child"

// The kinds of child.
const (
	kindNATS       = "nats"
	kindDispatcher = "dispatcher"
	kindFileWorker = "fileworker"
	kindCodeWorker = "codeworker"
	kindUp         = "up"
)

// spec says what a child is. It comes on the child's standard input, since it holds passwords.
type spec struct {
	Kind        string
	Folder      string // nats, up
	Port        int    // nats, up: the NATS server's
	DatabaseURL string
	NATSURL     string
	Listen      string
	PortalKey   string
	FileWorkers int // up
	Settings    Settings
}

// Settings are what a tortured fleet has smaller than others: times that let a minute hold many faults, and limits that a
// minute of calls can reach.
type Settings struct {
	Lease, AckWait, Sweep, Grace time.Duration
	// WorkspaceFiles, WorkspaceBytes and WaitingCalls; 0 is the default of the product.
	WorkspaceFiles int
	WorkspaceBytes int64
	WaitingCalls   int
}

// QuickSettings gives a lease of 2 s and a sweep every 300 ms.
func QuickSettings() Settings {
	return Settings{Lease: 2 * time.Second, AckWait: 3 * time.Second, Sweep: 300 * time.Millisecond, Grace: 5 * time.Second}
}

func (s spec) role(log zerolog.Logger) role.Config {
	cfg := role.DefaultConfig()
	cfg.DatabaseURL, cfg.NATSURL, cfg.Log = s.DatabaseURL, s.NATSURL, log
	cfg.Ledger.Lease, cfg.Queue.AckWait, cfg.SweepEvery, cfg.Grace = s.Settings.Lease, s.Settings.AckWait, s.Settings.Sweep, s.Settings.Grace
	lim := &cfg.Ledger.Limits
	lim.WorkspaceFiles = or(s.Settings.WorkspaceFiles, lim.WorkspaceFiles)
	lim.WorkspaceBytes = or(s.Settings.WorkspaceBytes, lim.WorkspaceBytes)
	lim.WaitingCalls = or(s.Settings.WaitingCalls, lim.WaitingCalls)
	cfg.Connections = 12
	return cfg
}

func or[T comparable](v, otherwise T) T {
	var zero T
	if v == zero {
		return otherwise
	}
	return v
}

// MaybeChild must be among the first statements of every main, and of TestMain, whose binary starts a fleet of this
// package: where the process is one of the fleet's it does that work and never returns.
func MaybeChild() {
	if len(os.Args) == 0 {
		return
	}
	name, run := os.Args[0], runChild
	switch name {
	case childName:
	case apartName:
		run = beApart
	default:
		return
	}
	if err := run(); err != nil && !errors.Is(err, errEnded) {
		fmt.Fprintln(os.Stderr, name+":", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// errEnded says that a role was told to end before it had begun, while its servers were away.
var errEnded = errors.New("told to end")

func runChild() error {
	in := json.NewDecoder(os.Stdin)
	var s spec
	if err := in.Decode(&s); err != nil {
		return fmt.Errorf("read what to be: %w", err)
	}
	go func() { // the other end of standard input closes when the parent is gone, however it went
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(3)
	}()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	log := zerolog.New(os.Stderr).Level(zerolog.InfoLevel).With().Timestamp().Logger()
	err := s.be(ctx, log)
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return errEnded
	}
	return err
}

func (s spec) be(ctx context.Context, log zerolog.Logger) error {
	switch s.Kind {
	case kindNATS:
		return runNATS(ctx, s, log)
	case kindDispatcher:
		return role.Dispatcher(ctx, s.role(log), role.DispatcherConfig{Listen: s.Listen, PortalKey: s.PortalKey, Ready: ready})
	case kindFileWorker:
		return role.FileWorker(ctx, s.role(log.Hook(readyHook{})), fileworker.DefaultConfig())
	case kindCodeWorker:
		return runCodeWorker(ctx, s, log)
	case kindUp:
		return fleet.Run(ctx, fleet.Config{Data: s.Folder, Listen: s.Listen, PortalKey: s.PortalKey, FileWorkers: s.FileWorkers,
			NATSPort: s.Port, Role: s.role(log), Log: log, Ready: ready})
	}
	return fmt.Errorf("there is no %q to be", s.Kind)
}

// readyHook tells the parent when a worker logs that it begins.
type readyHook struct{}

// Run looks at one line of the log.
func (readyHook) Run(_ *zerolog.Event, _ zerolog.Level, message string) {
	if strings.HasSuffix(message, "takes calls") {
		ready("")
	}
}

// ready tells the parent.
func ready(address string) { fmt.Println("ready", address) }

func runCodeWorker(ctx context.Context, s spec, log zerolog.Logger) error {
	driver, err := local.New(local.Options{})
	if err != nil {
		return err
	}
	own := codeworker.DefaultConfig()
	own.Grace = s.Settings.Grace
	return errors.Join(role.CodeWorker(ctx, s.role(log.Hook(readyHook{})), own, driver), driver.Close())
}

func runNATS(ctx context.Context, s spec, log zerolog.Logger) error {
	server := devenv.NewNATS(devenv.NATSConfig{Folder: s.Folder, Port: s.Port, Log: log})
	if err := server.Start(); err != nil {
		return err
	}
	ready(server.URL())
	<-ctx.Done()
	return server.Stop()
}
