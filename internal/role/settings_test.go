package role

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/rs/zerolog"

	"treeline/internal/codeworker"
	"treeline/internal/fileworker"
)

// parse gives the settings of a file worker's command line.
func parse[T any](t *testing.T, into *T, args ...string) error {
	t.Helper()
	parser, err := kong.New(into)
	if err != nil {
		t.Fatal(err)
	}
	_, err = parser.Parse(args)
	return err
}

// clean takes the settings of whoever runs the tests out of the environment.
func clean(t *testing.T) {
	t.Helper()
	for _, pair := range os.Environ() {
		if name, _, _ := strings.Cut(pair, "="); strings.HasPrefix(name, "TREELINE_") {
			t.Setenv(name, "")
			_ = os.Unsetenv(name)
		}
	}
}

func TestSettingsDefaultToTheProductsDefaults(t *testing.T) {
	clean(t)
	var s struct {
		Settings
		FileWorkerSettings
		CodeWorkerSettings
	}
	if err := parse(t, &s); err != nil {
		t.Fatal(err)
	}
	cfg, err := s.Settings.Config()
	if err != nil {
		t.Fatal(err)
	}
	want := DefaultConfig()
	want.Log, cfg.Log = zerolog.Logger{}, zerolog.Logger{}
	if !reflect.DeepEqual(cfg, want) {
		t.Errorf("without settings\n got %+v\nwant %+v", cfg, want)
	}
	file, err := s.FileWorkerSettings.Config()
	if err != nil || file != fileworker.DefaultConfig() {
		t.Errorf("file worker: %+v, %v", file, err)
	}
	code, err := s.CodeWorkerSettings.Config(cfg)
	if err != nil || code != codeworker.DefaultConfig() {
		t.Errorf("code worker: %+v, %v", code, err)
	}
}

func TestSettingsComeFromTheEnvironment(t *testing.T) {
	clean(t)
	for name, value := range map[string]string{
		"TREELINE_LEASE": "3s", "TREELINE_MAX_ATTEMPTS": "5", "TREELINE_WORKSPACE_BYTES": "2MiB", "TREELINE_RESULTS_KEPT": "1h",
		"TREELINE_REPLICAS": "3", "TREELINE_RUN_TIME": "10s", "TREELINE_DB_CONNECTIONS": "7",
	} {
		t.Setenv(name, value)
	}
	var s struct{ Settings }
	if err := parse(t, &s); err != nil {
		t.Fatal(err)
	}
	cfg, err := s.Settings.Config()
	if err != nil {
		t.Fatal(err)
	}
	got := []any{cfg.Ledger.Lease, cfg.Queue.AckWait, cfg.Ledger.Limits.Lease, cfg.Ledger.MaxAttempts, cfg.Ledger.Limits.Attempts,
		cfg.Ledger.Limits.WorkspaceBytes, cfg.Ledger.Kept, cfg.Queue.Kept, cfg.Queue.Replicas, cfg.Ledger.Limits.RunTime, cfg.Connections}
	want := []any{3 * time.Second, 3 * time.Second, 3 * time.Second, 5, 5, int64(2 << 20), time.Hour, time.Hour, 3, 10 * time.Second, 7}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestSettingsThatCannotBeAreNamed(t *testing.T) {
	clean(t)
	for _, c := range []struct{ flag, names string }{
		{"--lease=1ms", "TREELINE_LEASE is 1ms: it must be 1s or more"},
		{"--max-attempts=0", "TREELINE_MAX_ATTEMPTS is 0: it must be 1 or more"},
		{"--workspace-files=0", "TREELINE_WORKSPACE_FILES is 0"},
		{"--run-time-max=10s", "TREELINE_RUN_TIME_MAX is 10s: it must be 2m0s or more"},
		{"--grace=-1s", "TREELINE_GRACE is -1s"},
	} {
		var s struct{ Settings }
		if err := parse(t, &s, c.flag); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Settings.Config(); err == nil || !strings.Contains(err.Error(), c.names) {
			t.Errorf("%s: %v, want %q", c.flag, err, c.names)
		}
	}
}

func TestTheSandboxIsSetByTheEnvironment(t *testing.T) {
	clean(t)
	t.Setenv("TREELINE_SANDBOX_USER", "1234")
	t.Setenv("TREELINE_SANDBOX_CGROUP", "/sys/fs/cgroup/a,/sys/fs/cgroup/b")
	t.Setenv("TREELINE_PYTHON", "/opt/python3")
	var s struct{ CodeWorkerSettings }
	if err := parse(t, &s); err != nil {
		t.Fatal(err)
	}
	want := SandboxConfig{Driver: "local", Python: "/opt/python3", User: 1234, Cgroup: "/sys/fs/cgroup/a,/sys/fs/cgroup/b"}
	if got := s.SandboxConfig(); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	for _, user := range []int{0, -1} {
		s.SandboxUser = user
		if _, err := s.CodeWorkerSettings.Config(DefaultConfig()); err == nil || !strings.Contains(err.Error(), "TREELINE_SANDBOX_USER") {
			t.Errorf("sandboxes may run as user %d: %v", user, err)
		}
	}
}

func TestSizes(t *testing.T) {
	for _, c := range []struct {
		text  string
		bytes int64
		shown string
	}{
		{"0", 0, "0B"}, {"1", 1, "1B"}, {"1024", 1024, "1KiB"}, {"64MiB", 64 << 20, "64MiB"}, {"1 GiB", 1 << 30, "1GiB"},
		{"1536KiB", 1536 << 10, "1536KiB"}, {"7B", 7, "7B"},
	} {
		var s Size
		if err := s.UnmarshalText([]byte(c.text)); err != nil || int64(s) != c.bytes || s.String() != c.shown {
			t.Errorf("%q: %d %s, %v", c.text, s, s, err)
		}
	}
	for _, text := range []string{"", "MiB", "-1", "1.5MiB", "1MB", "9223372036854775807GiB", "1e3"} {
		var s Size
		if err := s.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q was read as %d", text, s)
		}
	}
}

// A password must not reach a log by way of an error about the URL that holds it.
func TestAddressesAreNotShown(t *testing.T) {
	for _, c := range []Servers{
		{DatabaseURL: "postgres://u:hunter2@h:x/db", NATSURL: "nats://h"},
		{DatabaseURL: "postgres://u:hunter%2@h/db", NATSURL: "nats://h"},
		{DatabaseURL: "postgres://h/db", NATSURL: "nats://u:hunter2@h:x"},
		{DatabaseURL: "postgres://h/db", NATSURL: "nats://a,nats://u:hunter%2@h"},
	} {
		_, err := config(mustSettings(t), c, zerolog.Nop())
		var setting *SettingError
		if !errors.As(err, &setting) || strings.Contains(err.Error(), "hunter") || !strings.Contains(err.Error(), "URL is not a URL") {
			t.Errorf("%v", err)
		}
	}
}

func mustSettings(t *testing.T) Settings {
	t.Helper()
	clean(t)
	var s struct{ Settings }
	if err := parse(t, &s); err != nil {
		t.Fatal(err)
	}
	return s.Settings
}

func TestThePortalsKey(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte("from-file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		keys Keys
		want string
	}{
		{Keys{PortalKey: "set"}, "set"},
		{Keys{PortalKey: "set", PortalKeyFile: file}, "set"},
		{Keys{PortalKeyFile: file}, "from-file\n"},
	} {
		if got, err := c.keys.portal(); err != nil || got != c.want {
			t.Errorf("%+v: %q, %v", c.keys, got, err)
		}
	}
	for _, k := range []Keys{{}, {PortalKeyFile: file + "-missing"}} {
		if got, err := k.portal(); err == nil {
			t.Errorf("%+v gave %q", k, got)
		}
	}
}
