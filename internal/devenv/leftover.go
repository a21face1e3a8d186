package devenv

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

// A server that Treeline started is known by its cluster's name, which is on its command line and in the titles of its
// children.
const (
	clusterName = "treeline"
	ourMark     = "cluster_name=" + clusterName
	ourTitle    = "postgres: " + clusterName + ": "
)

// serverProcess is a process of a Postgres server.
type serverProcess struct {
	pid  int
	main bool // the server itself, which the others are children of
	ours bool // started by Treeline
}

// ForeignServerError refuses a database folder in which a server runs that Treeline did not start.
type ForeignServerError struct {
	Folder string
	PID    int
}

func (e *ForeignServerError) Error() string {
	return fmt.Sprintf("a PostgreSQL server that Treeline did not start (process %d) runs on %s: stop it with pg_ctl stop -D %s", e.PID, e.Folder, e.Folder)
}

// StopLeftover ends what is left of a server in a Postgres's folder whose parent was killed. It gives a
// *FolderInUseError where the parent lives, and a *ForeignServerError where the server is somebody else's.
func StopLeftover(ctx context.Context, path string) error {
	folder, err := OpenFolder(path)
	if err != nil {
		return err
	}
	return errors.Join(stopLeftover(ctx, folder.Join(dataName)), folder.Close())
}

// stopLeftover ends what is left of an earlier server of ours on the data folder, whose parent was killed, and removes
// its pid file. The caller holds the folder's lock, so no living Treeline has started it.
func stopLeftover(ctx context.Context, dataFolder string) error {
	servers, err := serversOf(dataFolder)
	if err != nil {
		return fmt.Errorf("looking for an earlier server: %w", err)
	}
	// Fast shutdown, immediate shutdown, the kill: each only where the one before did not do. Backends without their
	// server have nothing left to finish.
	steps := []struct {
		signal syscall.Signal
		wait   time.Duration
	}{{syscall.SIGINT, 10 * time.Second}, {syscall.SIGQUIT, 5 * time.Second}, {syscall.SIGKILL, 5 * time.Second}}
	if !slices.ContainsFunc(servers, func(s serverProcess) bool { return s.main }) {
		steps = steps[2:]
	}
	for _, step := range steps {
		if err := signalServers(dataFolder, step.signal); err != nil {
			return err
		}
		gone, err := noServerWithin(ctx, dataFolder, step.wait)
		if err != nil {
			return err
		}
		if gone {
			return removeStalePID(dataFolder)
		}
	}
	return fmt.Errorf("an earlier server on %s does not end", dataFolder)
}

// signalServers signals every process of the servers on a data folder, unless one is somebody else's.
func signalServers(dataFolder string, signal syscall.Signal) error {
	servers, err := serversOf(dataFolder)
	if err != nil {
		return fmt.Errorf("looking for an earlier server: %w", err)
	}
	for _, server := range servers {
		if !server.ours {
			return &ForeignServerError{Folder: dataFolder, PID: server.pid}
		}
	}
	for _, server := range servers {
		if err := syscall.Kill(server.pid, signal); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("stopping an earlier server (process %d): %w", server.pid, err)
		}
	}
	return nil
}

// noServerWithin tells whether all servers on a data folder have ended in time.
func noServerWithin(ctx context.Context, dataFolder string, atMost time.Duration) (bool, error) {
	for deadline := time.Now().Add(atMost); ; {
		left, err := serversOf(dataFolder)
		if err != nil || len(left) == 0 {
			return err == nil, err
		}
		if time.Now().After(deadline) {
			return false, nil
		}
		if err := pause(ctx, 20*time.Millisecond); err != nil {
			return false, err
		}
	}
}

// removeStalePID removes the pid file of a server that is gone. Postgres would refuse to start if the pid in it were by
// now that of some other process of the same user, as happens in containers.
func removeStalePID(dataFolder string) error {
	err := os.Remove(filepath.Join(dataFolder, "postmaster.pid"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing the pid file of an earlier server: %w", err)
	}
	return nil
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
