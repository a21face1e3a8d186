package role

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kong"
	"github.com/rs/zerolog"

	"treeline/internal/codeworker"
	"treeline/internal/fileworker"
)

// Exit codes of every program.
const (
	ExitDone   = 0
	ExitFailed = 1
	ExitUsage  = 2
)

// Program is the command line of one role's program.
type Program interface {
	// Run runs the role until ctx ends.
	Run(ctx context.Context, log zerolog.Logger) error
	Logger() zerolog.Logger
}

// Execute parses the arguments and the environment into p, runs it until SIGTERM or SIGINT, and gives the exit code: 0 it
// was told to stop and stopped cleanly, 1 it failed, 2 it was configured wrongly. Why is on standard error.
func Execute(name, description string, p Program, args []string) int {
	fail := func(code int, err error) int {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		return code
	}
	parser, err := kong.New(p, kong.Name(name), kong.Description(description), kong.ValueFormatter(HelpText))
	if err != nil {
		return fail(ExitUsage, err)
	}
	if _, err := parser.Parse(args); err != nil {
		return fail(ExitUsage, fmt.Errorf("%w (%s --help lists what can be set)", err, name))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err = p.Run(ctx, p.Logger())
	var setting *SettingError
	switch {
	case errors.As(err, &setting):
		return fail(ExitUsage, err)
	case err != nil && !(ctx.Err() != nil && errors.Is(err, context.Canceled)):
		return fail(ExitFailed, err)
	}
	return ExitDone
}

// HelpText gives the help of a flag with its default and its environment variable behind it.
func HelpText(v *kong.Value) string {
	var notes []string
	if v.HasDefault && v.Default != "" && !v.IsBool() {
		notes = append(notes, "default "+v.Default)
	}
	if v.Flag != nil {
		for _, name := range v.Flag.Envs {
			notes = append(notes, "$"+name)
		}
	}
	if len(notes) == 0 {
		return v.Help
	}
	return v.Help + " [" + strings.Join(notes, ", ") + "]"
}

// SettingError says which setting cannot be.
type SettingError struct{ Err error }

func (e *SettingError) Error() string { return e.Err.Error() }

// Unwrap gives the reason.
func (e *SettingError) Unwrap() error { return e.Err }

// config joins what every program has.
func config(s Settings, servers Servers, log zerolog.Logger) (Config, error) {
	cfg, err := s.Config()
	if err == nil {
		err = servers.apply(&cfg)
	}
	if err != nil {
		return Config{}, &SettingError{err}
	}
	cfg.Log = log
	return cfg, nil
}

// DispatcherProgram is the command line of a dispatcher.
type DispatcherProgram struct {
	Servers
	Listen       string   `help:"Address of HTTP; port 0 has the system choose." default:"127.0.0.1:8080" env:"TREELINE_LISTEN" placeholder:"HOST:PORT"`
	AllowedHosts []string `help:"Further names under which HTTP may be reached, split by commas." env:"TREELINE_ALLOWED_HOSTS" placeholder:"HOST"`
	Keys
	Installed  string        `help:"What the sandboxes' Python has, for the description of run_code: a code worker logs it at start." env:"TREELINE_INSTALLED" placeholder:"TEXT"`
	StopNotice time.Duration `help:"How long a dispatcher that is told to stop still serves while /readyz says that it is not ready: part of the grace period, at most half of it." default:"5s" env:"TREELINE_STOP_NOTICE" placeholder:"TIME"`
	Logging
	Settings

	out io.Writer
}

// Run serves until ctx ends. It prints "ready http://HOST:PORT" on standard output once it does.
func (p *DispatcherProgram) Run(ctx context.Context, log zerolog.Logger) error {
	cfg, err := config(p.Settings, p.Servers, log)
	if err != nil {
		return err
	}
	if err := atLeast("TREELINE_STOP_NOTICE", p.StopNotice, 0); err != nil {
		return &SettingError{err}
	}
	key, err := p.portal()
	if err != nil {
		return &SettingError{err}
	}
	out := p.out
	if out == nil {
		out = os.Stdout
	}
	return Dispatcher(ctx, cfg, DispatcherConfig{Listen: p.Listen, AllowedHosts: p.AllowedHosts, PortalKey: key, ViewerKey: p.ViewerKey,
		Installed: p.Installed, Notice: p.StopNotice, Ready: func(addr string) { fmt.Fprintf(out, "ready http://%s\n", addr) }})
}

// FileWorkerSettings are those of a file worker alone.
type FileWorkerSettings struct {
	FileSlots       int  `help:"Calls of different conversations that a file worker does at a time." default:"16" env:"TREELINE_FILE_SLOTS" placeholder:"N"`
	FileCacheBytes  Size `help:"A file worker's cache of file contents." default:"64MiB" env:"TREELINE_FILE_CACHE_BYTES" placeholder:"SIZE"`
	FileMemoryBytes Size `help:"Memory for files of all calls that a file worker has in hand; a call that needs more goes on alone." default:"256MiB" env:"TREELINE_FILE_MEMORY_BYTES" placeholder:"SIZE"`
}

// Config gives the configuration of a file worker.
func (s FileWorkerSettings) Config() (fileworker.Config, error) {
	if err := atLeast("TREELINE_FILE_SLOTS", s.FileSlots, 1); err != nil {
		return fileworker.Config{}, err
	}
	cfg := fileworker.DefaultConfig()
	cfg.Slots, cfg.CacheBytes, cfg.MemoryBytes = s.FileSlots, int64(s.FileCacheBytes), int64(s.FileMemoryBytes)
	return cfg, nil
}

// FileWorkerProgram is the command line of a file worker.
type FileWorkerProgram struct {
	Servers
	FileWorkerSettings
	Logging
	Settings
}

// Run does calls until ctx ends.
func (p *FileWorkerProgram) Run(ctx context.Context, log zerolog.Logger) error {
	cfg, err := config(p.Settings, p.Servers, log)
	if err != nil {
		return err
	}
	own, err := p.FileWorkerSettings.Config()
	if err != nil {
		return &SettingError{err}
	}
	return FileWorker(ctx, cfg, own)
}

// CodeWorkerSettings are those of a code worker alone.
type CodeWorkerSettings struct {
	Sandbox         string `help:"What code is sealed by." default:"local" enum:"local" env:"TREELINE_SANDBOX" placeholder:"NAME"`
	Python          string `help:"The interpreter (default: the python3 that the sandbox's user can run)." env:"TREELINE_PYTHON" placeholder:"FILE"`
	SandboxUser     int    `help:"User and group id that a root worker's sandboxes run as; others run as themselves." default:"65534" env:"TREELINE_SANDBOX_USER" placeholder:"UID"`
	SandboxCgroup   string `help:"Cgroup folders that the sandbox may make groups in, split by commas (default: none; memory is then added up)." env:"TREELINE_SANDBOX_CGROUP" placeholder:"DIR"`
	CodeSlots       int    `help:"Runs that a code worker has going at a time, unless memory allows fewer." default:"4" env:"TREELINE_CODE_SLOTS" placeholder:"N"`
	CodeMemoryBytes Size   `help:"Memory of all runs together (default: what is available)." env:"TREELINE_CODE_MEMORY_BYTES" placeholder:"SIZE"`
	CodeCacheBytes  Size   `help:"A code worker's cache of file contents." default:"32MiB" env:"TREELINE_CODE_CACHE_BYTES" placeholder:"SIZE"`
}

// Config gives the configuration of a code worker whose runs may go on for grace once it is to stop.
func (s CodeWorkerSettings) Config(role Config) (codeworker.Config, error) {
	err := errors.Join(atLeast("TREELINE_CODE_SLOTS", s.CodeSlots, 1), atLeast("TREELINE_SANDBOX_USER", s.SandboxUser, 1))
	if err != nil {
		return codeworker.Config{}, err
	}
	cfg := codeworker.DefaultConfig()
	cfg.Slots, cfg.MemoryBytes, cfg.CacheBytes, cfg.Grace = s.CodeSlots, int64(s.CodeMemoryBytes), int64(s.CodeCacheBytes), role.Grace
	return cfg, nil
}

// SandboxConfig gives the sandbox that was chosen.
func (s CodeWorkerSettings) SandboxConfig() SandboxConfig {
	return SandboxConfig{Driver: s.Sandbox, Python: s.Python, User: s.SandboxUser, Cgroup: s.SandboxCgroup}
}

// CodeWorkerProgram is the command line of a code worker.
type CodeWorkerProgram struct {
	Servers
	CodeWorkerSettings
	Logging
	Settings
}

// Run does calls until ctx ends.
func (p *CodeWorkerProgram) Run(ctx context.Context, log zerolog.Logger) (err error) {
	cfg, err := config(p.Settings, p.Servers, log)
	if err != nil {
		return err
	}
	own, err := p.CodeWorkerSettings.Config(cfg)
	if err != nil {
		return &SettingError{err}
	}
	driver, err := OpenSandbox(p.SandboxConfig())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, driver.Close()) }()
	return CodeWorker(ctx, cfg, own, driver)
}
