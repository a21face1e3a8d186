package devenv

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// holdEnv has the test program be a process that runs a private Postgres until it is killed.
const holdEnv = "DEVENV_TEST_HOLD"

func TestMain(m *testing.M) {
	folder := os.Getenv(holdEnv)
	if folder == "" {
		os.Exit(m.Run())
	}
	postgres := NewPostgres(PostgresConfig{Folder: folder, NoSync: true})
	if err := postgres.Start(context.Background()); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("ready")
	_, _ = io.Copy(io.Discard, os.Stdin) // until the test ends
}

// holder is another process that runs a private Postgres over a folder.
func holder(t *testing.T, folder string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), holdEnv+"="+folder)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = cmd.Process.Kill(), cmd.Wait() })
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		t.Fatalf("the other process: %q, %v", line, err)
	}
	return cmd
}

// openFolder is an empty folder that another user can pass through, below /tmp since TMPDIR may be private.
func openFolder(t *testing.T) string {
	t.Helper()
	folder, err := os.MkdirTemp("/tmp", "devenv-test-*")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(folder); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(folder, 0o711); err != nil {
		t.Fatal(err)
	}
	return folder
}

// started is a running server, stopped at the end of the test.
func started(t *testing.T, cfg PostgresConfig) *Postgres {
	t.Helper()
	if cfg.Folder == "" {
		cfg.Folder = filepath.Join(openFolder(t), "postgres")
	}
	cfg.NoSync = true
	postgres := NewPostgres(cfg)
	t.Cleanup(func() {
		if err := postgres.Stop(); err != nil {
			t.Error(err)
		}
	})
	if err := postgres.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	return postgres
}

func execute(t *testing.T, url string, statements ...string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	for _, statement := range statements {
		if _, err := conn.Exec(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}

func value(t *testing.T, url, query string) string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	var got string
	if err := conn.QueryRow(t.Context(), query).Scan(&got); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return got
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if holds() {
			return
		}
	}
	t.Fatalf("not within 30 s: %s", what)
}

func wantError(t *testing.T, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want one with %q", parts)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error %q lacks %q", err, part)
		}
	}
}
