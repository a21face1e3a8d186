package torture

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

const (
	// folders are the names of those, in /tmp, in which tortures keep what they have.
	folders = "treeline-torture-*"
	// runningName is the file, in a torture's folder, that is there and locked as long as the torture goes on. One that is
	// there and not locked is of a torture that was killed; where it is not there, the folder was left for a look.
	runningName = "running"
)

// markRunning says that a torture goes on in a folder until end is called, or this process ends.
func markRunning(folder string) (end func() error, err error) {
	mark := filepath.Join(folder, runningName)
	f, err := os.OpenFile(mark+".new", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("mark the torture as running: %w", err)
	}
	// It has its name only once it is locked, so that nobody takes it for a dead one's.
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err == nil {
		err = os.Rename(f.Name(), mark)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("mark the torture as running: %w", err), f.Close())
	}
	return func() error { return errors.Join(os.Remove(mark), f.Close()) }, nil
}

// removeDead removes the folders of tortures of this user that were killed. Their processes have died with them, and their
// mounts with these.
func removeDead() error {
	marks, err := filepath.Glob(filepath.Join("/tmp", folders, runningName))
	if err != nil {
		return fmt.Errorf("look for tortures that were killed: %w", err)
	}
	for _, mark := range marks {
		dead, err := isDead(mark)
		if err != nil {
			return err
		}
		if !dead {
			continue
		}
		if err := os.RemoveAll(filepath.Dir(mark)); err != nil {
			return fmt.Errorf("remove what a torture that was killed has left: %w", err)
		}
	}
	return nil
}

// isDead reports whether a mark is this user's and nobody holds its lock any more. What is another user's, or is going away
// just now, is not ours to remove.
func isDead(mark string) (bool, error) {
	var folder unix.Stat_t
	if err := unix.Lstat(filepath.Dir(mark), &folder); err != nil || int(folder.Uid) != os.Geteuid() || folder.Mode&unix.S_IFMT != unix.S_IFDIR {
		return false, nil
	}
	f, err := os.OpenFile(mark, os.O_RDWR|unix.O_NOFOLLOW, 0)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look at the mark of a torture: %w", err)
	}
	defer func() { _ = f.Close() }() // nothing was written
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("try the lock of a torture: %w", err)
	}
	return true, nil
}
