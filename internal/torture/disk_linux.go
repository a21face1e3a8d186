package torture

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// disk is a small file system of a rig's own.
type disk struct{ path string }

// diskBytes is room for the database server, its log of writes and a minute of calls.
const diskBytes = "512m"

// newDisk mounts one, which only root can; else it says why not.
func newDisk(path string) (*disk, error) {
	if os.Geteuid() != 0 {
		return nil, fmt.Errorf("a small disk can only be mounted by root")
	}
	if err := os.Mkdir(path, 0o711); err != nil {
		return nil, err
	}
	if err := unix.Mount("tmpfs", path, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=0711,size="+diskBytes); err != nil {
		return nil, fmt.Errorf("mount a small disk: %w", err)
	}
	return &disk{path}, nil
}

func (d *disk) close() error {
	if d == nil {
		return nil
	}
	if err := unix.Unmount(d.path, 0); err != nil {
		return fmt.Errorf("unmount the small disk: %w", err)
	}
	return nil
}
