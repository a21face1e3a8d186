package fleet_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"treeline/internal/devenv"
	"treeline/internal/devenv/devtest"
	"treeline/internal/fleet"
	"treeline/internal/role"
)

const (
	soon = time.Minute
	key  = "portal-key-of-tests"
)

// running is a fleet over a data folder.
type running struct {
	t     *testing.T
	url   string
	stop  context.CancelFunc
	ended chan error
}

func config(data string) fleet.Config {
	cfg := fleet.Config{Data: data, Listen: "127.0.0.1:0", PortalKey: key, FileWorkers: 1, Role: role.DefaultConfig()}
	cfg.Role.Grace, cfg.Role.SweepEvery = 2*time.Second, 200*time.Millisecond
	return cfg
}

func start(t *testing.T, cfg fleet.Config) *running {
	t.Helper()
	ready := make(chan string, 1)
	cfg.Ready = func(addr string) { ready <- addr }
	ctx, cancel := context.WithCancel(context.Background())
	f := &running{t: t, stop: cancel, ended: make(chan error, 1)}
	go func() { f.ended <- fleet.Run(ctx, cfg); close(f.ended) }()
	t.Cleanup(func() { cancel(); <-f.ended })
	select {
	case addr := <-ready:
		f.url = "http://" + addr
	case err := <-f.ended:
		t.Fatalf("the fleet ended: %v", err)
	case <-time.After(2 * soon):
		t.Fatal("the fleet is not ready")
	}
	return f
}

func (f *running) end() {
	f.t.Helper()
	f.stop()
	select {
	case err := <-f.ended:
		if err != nil {
			f.t.Fatalf("the fleet ended: %v", err)
		}
	case <-time.After(soon):
		f.t.Fatal("the fleet does not end")
	}
}

func (f *running) do(method, path, body string) (int, string, error) {
	r, err := http.NewRequest(method, f.url+path, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	r.Header.Set("Authorization", "Bearer "+key)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b), err
}

// want tries until the answer has the status: after a fault it may take a moment.
func (f *running) want(status int, method, path, body string) string {
	f.t.Helper()
	var got int
	var text string
	var err error
	for deadline := time.Now().Add(soon); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		if got, text, err = f.do(method, path, body); err == nil && got == status {
			return text
		}
	}
	f.t.Fatalf("%s %s: %d %s %v, want %d", method, path, got, text, err, status)
	return ""
}

func TestAFleetStartsAgainOnItsData(t *testing.T) {
	data := filepath.Join(devtest.Folder(t), "data")
	f := start(t, config(data))
	f.want(201, "PUT", "/v1/conversations/k1", "{}")
	f.want(201, "PUT", "/v1/conversations/k1/files/a.txt", "kept")
	f.end()
	f = start(t, config(data))
	f.want(200, "PUT", "/v1/conversations/k1", "{}")
	if got := f.want(200, "GET", "/v1/conversations/k1/files/a.txt", ""); got != "kept" {
		t.Errorf("the file is %q", got)
	}
	f.end()
}

func TestAFolderInUseIsRefusedAndItsFleetGoesOn(t *testing.T) {
	data := filepath.Join(devtest.Folder(t), "data")
	f := start(t, config(data))
	var inUse *devenv.FolderInUseError
	if err := fleet.Run(t.Context(), config(data)); !errors.As(err, &inUse) {
		t.Errorf("a second fleet: %v", err)
	}
	f.want(201, "PUT", "/v1/conversations/k1", "{}")
	f.want(201, "PUT", "/v1/conversations/k1/files/a.txt", "x")
}

func TestAPostgresThatIsKilledComesBack(t *testing.T) {
	data := filepath.Join(devtest.Folder(t), "data")
	f := start(t, config(data))
	f.want(201, "PUT", "/v1/conversations/k1", "{}")
	f.want(201, "PUT", "/v1/conversations/k1/files/a.txt", "before")
	pids, err := filepath.Glob(filepath.Join(data, "postgres", "data", "postmaster.pid"))
	if err != nil || len(pids) != 1 {
		t.Fatalf("the server's process: %v, %v", pids, err)
	}
	for range 2 {
		b, err := os.ReadFile(pids[0])
		if err != nil {
			t.Fatal(err)
		}
		first, _, _ := strings.Cut(string(b), "\n")
		kill(t, first)
		f.want(200, "PUT", "/v1/conversations/k1/files/a.txt", "after")
		if got := f.want(200, "GET", "/v1/conversations/k1/files/a.txt", ""); got != "after" {
			t.Errorf("the file is %q", got)
		}
	}
	f.end()
}

func kill(t *testing.T, pid string) {
	t.Helper()
	n, err := strconv.Atoi(strings.TrimSpace(pid))
	if err == nil {
		err = syscall.Kill(n, syscall.SIGKILL)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestAFleetThatCannotListenEndsWithTheReason(t *testing.T) {
	cfg := config(filepath.Join(devtest.Folder(t), "data"))
	cfg.Listen = "127.0.0.1:999999"
	ended := make(chan error, 1)
	go func() { ended <- fleet.Run(context.Background(), cfg) }()
	select {
	case err := <-ended:
		if err == nil || !strings.Contains(err.Error(), "listen") {
			t.Errorf("it ended with %v", err)
		}
	case <-time.After(2 * soon):
		t.Fatal("it does not end")
	}
}

func TestAFleetThatIsStoppedWhileItStartsEnds(t *testing.T) {
	for _, after := range []time.Duration{0, 50 * time.Millisecond, 500 * time.Millisecond, 1500 * time.Millisecond} {
		data := filepath.Join(devtest.Folder(t), "data")
		ctx, cancel := context.WithCancel(context.Background())
		time.AfterFunc(after, cancel)
		ended := make(chan error, 1)
		go func() { ended <- fleet.Run(ctx, config(data)) }()
		select {
		case <-ended: // with or without a reason
		case <-time.After(soon):
			t.Fatalf("stopped after %s, it does not end", after)
		}
		folder, err := devenv.OpenFolder(data)
		if err != nil {
			t.Fatalf("stopped after %s, its folder is still held: %v", after, err)
		}
		if err := folder.Close(); err != nil {
			t.Error(err)
		}
		cancel()
	}
}
