package role

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"
)

// Settings are what an operator sets of every role, and sets alike for all of them. The tags are kong's: each is a flag and
// an environment variable.
type Settings struct {
	DBConnections int           `name:"db-connections" help:"Most connections to the database of one role." default:"24" env:"TREELINE_DB_CONNECTIONS" placeholder:"N"`
	Lease         time.Duration `help:"How long a worker that gives no sign of life keeps a call." default:"30s" env:"TREELINE_LEASE" placeholder:"TIME"`
	MaxAttempts   int           `help:"How many workers may die over one call before it fails." default:"3" env:"TREELINE_MAX_ATTEMPTS" placeholder:"N"`
	SweepEvery    time.Duration `help:"Time between the dispatchers' looks for what got stuck." default:"2s" env:"TREELINE_SWEEP_EVERY" placeholder:"TIME"`
	Grace         time.Duration `help:"How long a role that is told to stop may take to end what it has in hand." default:"20s" env:"TREELINE_GRACE" placeholder:"TIME"`
	ResultsKept   time.Duration `help:"How long results stay in the stream TREELINE_RESULTS." default:"24h" env:"TREELINE_RESULTS_KEPT" placeholder:"TIME"`
	Replicas      int           `help:"Replicas of each stream: 1 on a single NATS server, 3 on a cluster." default:"1" env:"TREELINE_REPLICAS" placeholder:"N"`

	LimitSettings
}

// Config gives the configuration of a role, without the addresses. The error names the setting that cannot be.
func (s Settings) Config() (Config, error) {
	limits, err := s.LimitSettings.limits()
	if err != nil {
		return Config{}, err
	}
	err = errors.Join(
		atLeast("TREELINE_DB_CONNECTIONS", s.DBConnections, 2),
		atLeast("TREELINE_LEASE", s.Lease, time.Second),
		atLeast("TREELINE_MAX_ATTEMPTS", s.MaxAttempts, 1),
		atLeast("TREELINE_SWEEP_EVERY", s.SweepEvery, 100*time.Millisecond),
		atLeast("TREELINE_GRACE", s.Grace, 0),
		atLeast("TREELINE_RESULTS_KEPT", s.ResultsKept, time.Minute),
		atLeast("TREELINE_REPLICAS", s.Replicas, 1),
	)
	if err != nil {
		return Config{}, err
	}
	limits.Lease, limits.Attempts = s.Lease, s.MaxAttempts
	cfg := DefaultConfig()
	cfg.Connections, cfg.SweepEvery, cfg.Grace = s.DBConnections, s.SweepEvery, s.Grace
	cfg.Ledger.Limits, cfg.Ledger.Lease, cfg.Ledger.MaxAttempts, cfg.Ledger.Kept = limits, s.Lease, s.MaxAttempts, s.ResultsKept
	// An event is delivered again no sooner than the call that it names could be taken over.
	cfg.Queue.AckWait, cfg.Queue.Kept, cfg.Queue.Replicas = s.Lease, s.ResultsKept, s.Replicas
	return cfg, nil
}

func atLeast[T int | int64 | time.Duration](name string, value, least T) error {
	if value < least {
		return fmt.Errorf("%s is %v: it must be %v or more", name, value, least)
	}
	return nil
}

// Servers are the addresses of a role that runs by itself. They hold passwords and are never logged.
type Servers struct {
	DatabaseURL     string `help:"The database, migrated already: postgres://..." required:"" env:"TREELINE_DATABASE_URL" placeholder:"URL"`
	NATSURL         string `name:"nats-url" help:"The NATS servers, with JetStream: nats://..., several split by commas." required:"" env:"TREELINE_NATS_URL" placeholder:"URL"`
	NATSCredentials string `name:"nats-credentials" help:"File with NATS credentials." env:"TREELINE_NATS_CREDENTIALS" placeholder:"FILE"`
}

// apply puts the addresses into a configuration.
func (s Servers) apply(cfg *Config) error {
	if err := CheckURL("TREELINE_DATABASE_URL", s.DatabaseURL); err != nil {
		return err
	}
	for one := range strings.SplitSeq(s.NATSURL, ",") {
		if err := CheckURL("TREELINE_NATS_URL", strings.TrimSpace(one)); err != nil {
			return err
		}
	}
	cfg.DatabaseURL, cfg.NATSURL = s.DatabaseURL, s.NATSURL
	if s.NATSCredentials != "" {
		cfg.NATSOptions = append(cfg.NATSOptions, nats.UserCredentials(s.NATSCredentials))
	}
	return nil
}

// CheckURL refuses, without showing it, an address that is no URL: the errors of those who would use it show it, and it
// may hold a password.
func CheckURL(name, address string) error {
	if !strings.Contains(address, "://") {
		return nil // host:port, or key=value pairs for the database
	}
	if _, err := url.Parse(address); err != nil {
		return fmt.Errorf("%s is not a URL (it is not shown, since it may hold a password): write special characters of a password as %%XX", name)
	}
	return nil
}

// Keys are what opens the portal's routes.
type Keys struct {
	PortalKey     string `help:"The portal's key, for trials: others can see a command line. Two, split by a comma, for rotation." env:"TREELINE_PORTAL_KEY" placeholder:"KEY"`
	PortalKeyFile string `help:"File with the portal's key, one or two lines." env:"TREELINE_PORTAL_KEY_FILE" placeholder:"FILE"`
	ViewerKey     string `help:"A key that only reads." env:"TREELINE_VIEWER_KEY" placeholder:"KEY"`
}

// portal gives the portal's key, from the file if it is not set itself.
func (k Keys) portal() (string, error) {
	if k.PortalKey != "" {
		return k.PortalKey, nil
	}
	if k.PortalKeyFile == "" {
		return "", errors.New("the portal has no key: set TREELINE_PORTAL_KEY_FILE or TREELINE_PORTAL_KEY")
	}
	b, err := os.ReadFile(k.PortalKeyFile)
	if err != nil {
		return "", fmt.Errorf("read the portal's key: %w", err)
	}
	return string(b), nil
}

// Logging says how much is logged. The log goes to standard error as JSON, one object a line.
type Logging struct {
	LogLevel string `help:"Least level of what is logged: debug, info, warn or error." default:"info" enum:"debug,info,warn,error" env:"TREELINE_LOG_LEVEL" placeholder:"LEVEL"`
}

// Logger writes to standard error.
func (l Logging) Logger() zerolog.Logger {
	level, err := zerolog.ParseLevel(l.LogLevel)
	if err != nil {
		level = zerolog.InfoLevel
	}
	return zerolog.New(os.Stderr).Level(level).With().Timestamp().Logger()
}
