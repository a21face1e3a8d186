package devenv

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
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
	// Fast shutdown, immediate shutdown, the kill: each only where the one before did not do.
	for _, step := range []struct {
		signal syscall.Signal
		wait   time.Duration
	}{{syscall.SIGINT, 10 * time.Second}, {syscall.SIGQUIT, 5 * time.Second}, {syscall.SIGKILL, 5 * time.Second}} {
		left, err := signalServers(dataFolder, step.signal)
		if err != nil {
			return err
		}
		if left == 0 {
			return removeStalePID(dataFolder)
		}
		if err := waitForNoServer(ctx, dataFolder, step.wait); err != nil {
			return err
		}
	}
	left, err := serversOf(dataFolder)
	if err != nil {
		return err
	}
	if len(left) > 0 {
		return fmt.Errorf("an earlier server (process %d) on %s does not end", left[0].pid, dataFolder)
	}
	return removeStalePID(dataFolder)
}

// signalServers gives how many processes of ours were there to be signalled.
func signalServers(dataFolder string, signal syscall.Signal) (int, error) {
	servers, err := serversOf(dataFolder)
	if err != nil {
		return 0, fmt.Errorf("looking for an earlier server: %w", err)
	}
	for _, server := range servers {
		if !server.ours {
			return 0, &ForeignServerError{Folder: dataFolder, PID: server.pid}
		}
	}
	for _, server := range servers {
		if err := syscall.Kill(server.pid, signal); err != nil && !errors.Is(err, syscall.ESRCH) {
			return 0, fmt.Errorf("stopping an earlier server (process %d): %w", server.pid, err)
		}
	}
	return len(servers), nil
}

func waitForNoServer(ctx context.Context, dataFolder string, atMost time.Duration) error {
	deadline := time.Now().Add(atMost)
	for time.Now().Before(deadline) {
		left, err := serversOf(dataFolder)
		if err != nil || len(left) == 0 {
			return err
		}
		if err := pause(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
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
