package local

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Rights of Landlock's ABI 2, the first that lets files move between folders.
const (
	readRights = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	fileRights = unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE |
		unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_SOCK |
		unix.LANDLOCK_ACCESS_FS_MAKE_FIFO | unix.LANDLOCK_ACCESS_FS_MAKE_SYM | unix.LANDLOCK_ACCESS_FS_REFER
	deviceRights = unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK
)

// landlockABI gives the kernel's version of Landlock, 0 where there is none that can be used.
func landlockABI() int {
	abi, _, errno := unix.RawSyscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 || abi < 2 {
		return 0
	}
	return int(abi)
}

// restrictFiles confines the calling thread by Landlock as well: it writes in the trees and to the devices only, opens no
// TCP port, and signals nothing outside what it starts itself. It does nothing for abi 0.
func restrictFiles(abi int) error {
	if abi == 0 {
		return nil
	}
	attr := unix.LandlockRulesetAttr{Handled_access_fs: readRights | fileRights | deviceRights}
	size := uintptr(8)
	write := uint64(fileRights)
	if abi >= 3 {
		attr.Handled_access_fs |= unix.LANDLOCK_ACCESS_FS_TRUNCATE
		write |= unix.LANDLOCK_ACCESS_FS_TRUNCATE
	}
	if abi >= 4 {
		attr.Handled_access_net = unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP
		size = 16
	}
	if abi >= 6 {
		attr.Scoped = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL
		size = 24
	}
	fd, _, errno := unix.RawSyscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), size, 0)
	if errno != 0 {
		return fmt.Errorf("make the landlock rules: %w", errno)
	}
	ruleset := int(fd)
	defer unix.Close(ruleset)
	rules := map[string]uint64{
		"/": readRights, "/work": write, "/tmp": write, "/home": write, "/dev/shm": write,
		"/dev/null": unix.LANDLOCK_ACCESS_FS_WRITE_FILE, "/dev/zero": unix.LANDLOCK_ACCESS_FS_WRITE_FILE,
		"/dev/full": unix.LANDLOCK_ACCESS_FS_WRITE_FILE,
	}
	for path, rights := range rules {
		if err := permit(ruleset, path, rights); err != nil {
			return err
		}
	}
	if _, _, errno := unix.RawSyscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(ruleset), 0, 0); errno != 0 {
		return fmt.Errorf("apply the landlock rules: %w", errno)
	}
	return nil
}

func permit(ruleset int, path string, rights uint64) error {
	at, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open %s for landlock: %w", path, err)
	}
	defer unix.Close(at)
	// The kernel's structure is packed: eight bytes and four.
	attr := unix.LandlockPathBeneathAttr{Allowed_access: rights, Parent_fd: int32(at)}
	_, _, errno := unix.RawSyscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(ruleset), unix.LANDLOCK_RULE_PATH_BENEATH,
		uintptr(unsafe.Pointer(&attr)), 0, 0, 0)
	if errno != 0 {
		return fmt.Errorf("allow %s in landlock: %w", path, errno)
	}
	return nil
}
