package torture

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// Up is the whole fleet in one process, as `treeline up` runs it.
type Up struct {
	*Process
	folder, listen string
	natsPort       int
}

// NewUp makes an up over a data folder; Start starts it.
func NewUp(data, log string, fileWorkers int, s Settings) (*Up, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	natsPort, err := freePort()
	if err != nil {
		return nil, err
	}
	listen := fmt.Sprintf("127.0.0.1:%d", port)
	return &Up{Process: &Process{Name: "up", log: log, spec: spec{Kind: kindUp, Folder: data, Port: natsPort, Listen: listen,
		PortalKey: portalKey, FileWorkers: fileWorkers, Settings: s}}, folder: data, listen: listen, natsPort: natsPort}, nil
}

// Client makes a client of the fleet, which must have been started once.
func (u *Up) Client() (*Client, error) {
	nats, err := natsURL(filepath.Join(u.folder, "nats"), u.natsPort)
	if err != nil {
		return nil, err
	}
	return NewClient([]string{"http://" + u.listen}, portalKey, nats)
}

// Monitor makes a subscriber to the fleet's results.
func (u *Up) Monitor() (*Monitor, error) {
	nats, err := natsURL(filepath.Join(u.folder, "nats"), u.natsPort)
	if err != nil {
		return nil, err
	}
	return NewMonitor(nats)
}

// KillPostgres ends the fleet's private database server with SIGKILL, and nothing else.
func (u *Up) KillPostgres() error {
	b, err := os.ReadFile(filepath.Join(u.folder, "postgres", "data", "postmaster.pid"))
	if errors.Is(err, os.ErrNotExist) {
		return nil // it is down at the moment
	}
	if err != nil {
		return fmt.Errorf("look for the database server: %w", err)
	}
	first, _, _ := strings.Cut(string(b), "\n")
	pid, err := strconv.Atoi(strings.TrimSpace(first))
	if err != nil {
		return nil // the file is being written
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("kill the database server: %w", err)
	}
	return nil
}

// KillAndStart kills the whole fleet and starts it again on the same data.
func (u *Up) KillAndStart(ctx context.Context) error {
	if err := u.Kill(); err != nil {
		return err
	}
	return u.Start(ctx)
}
