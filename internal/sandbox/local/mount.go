package local

import (
	"fmt"
	"strconv"

	"golang.org/x/sys/unix"
)

// attach moves a detached mount to path and closes it.
func attach(fd int, path string) error {
	defer unix.Close(fd)
	if err := unix.MoveMount(fd, "", unix.AT_FDCWD, path, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return fmt.Errorf("mount %s: %w", path, err)
	}
	return nil
}

func newTmpfs(size, inodes int64, flags int) (int, error) {
	return newFilesystem("tmpfs", flags, map[string]string{
		"size": strconv.FormatInt(size, 10), "nr_inodes": strconv.FormatInt(inodes, 10), "mode": "755",
	})
}

func newProc() (int, error) {
	return newFilesystem("proc", plainFlags|unix.MOUNT_ATTR_NOEXEC, map[string]string{"subset": "pid"})
}

func newFilesystem(kind string, flags int, options map[string]string) (int, error) {
	fs, err := unix.Fsopen(kind, unix.FSOPEN_CLOEXEC)
	if err != nil {
		return -1, fmt.Errorf("open a %s: %w", kind, err)
	}
	defer unix.Close(fs)
	for key, value := range options {
		if err := unix.FsconfigSetString(fs, key, value); err != nil {
			return -1, fmt.Errorf("set %s of the %s: %w", key, kind, err)
		}
	}
	if err := unix.FsconfigCreate(fs); err != nil {
		return -1, fmt.Errorf("create the %s: %w", kind, err)
	}
	fd, err := unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, flags)
	if err != nil {
		return -1, fmt.Errorf("mount the %s: %w", kind, err)
	}
	return fd, nil
}
