package local

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

// Flags of every mount that the program sees.
const (
	plainFlags = unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV
	readFlags  = plainFlags | unix.MOUNT_ATTR_RDONLY
)

// rootTrees are the folders that outlive the making of the root.
type rootTrees struct {
	writable int // tmpfs with work, tmp, home and shm
	readable int // tmpfs with inputs, skills and code, which the program sees read-only
	proc     int // the namespace's own /proc, writable, for init
	score    int // init's oom_score_adj
}

// mounter makes the root step by step and remembers the first failure.
type mounter struct {
	err error
}

func (m *mounter) do(step string, f func() error) {
	if m.err != nil {
		return
	}
	if err := f(); err != nil {
		m.err = asStep(step, err)
	}
}

// makeRoot builds a root of nothing but the interpreter's files, devices that hold nothing, the namespace's own /proc and
// the two trees, and moves into it. Nothing of the old root can be reached afterwards.
func makeRoot(s setup) (rootTrees, error) {
	m := &mounter{}
	var t rootTrees
	var binds []bind
	root := -1
	m.do("open the host's files", func() (err error) { binds, err = openBinds(s.Runtime.Binds); return err })
	m.do("make the root", func() (err error) { root, err = newTmpfs(2<<20, 4096, 0); return err })
	m.do("make the writable tree", func() (err error) { t.writable, err = newTmpfs(s.Disk, s.Inodes, plainFlags); return err })
	m.do("make the read-only tree", func() (err error) {
		t.readable, err = newTmpfs(s.Inputs+8<<20, 65536, plainFlags)
		return err
	})
	m.do("make /proc", func() (err error) { t.proc, err = newProc(); return err })
	m.do("enter the new root", func() error { return enter(root) })
	m.do("leave the old root", leaveOld)
	m.do("lay out the root", func() error { return layOut(s.Runtime.Links) })
	m.do("place the trees", func() error { return t.place() })
	m.do("make the trees' folders", func() error { return t.folders() })
	m.do("mount the trees", func() error { return t.attach() })
	// After the trees: an interpreter may well live below /home or /tmp, which they would hide.
	m.do("mount the interpreter's files", func() error { return attachBinds(binds) })
	m.do("look at init", func() (err error) { t.score, err = openScore(t.proc); return err })
	m.do("make the root read-only", func() error {
		return unix.MountSetattr(unix.AT_FDCWD, "/", 0, &unix.MountAttr{Attr_set: readFlags})
	})
	return t, m.err
}

type bind struct {
	path   string
	fd     int
	folder bool
	device bool
}

// devices are the host's devices that hold nothing.
var devices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"}

func openBinds(paths []string) ([]bind, error) {
	var binds []bind
	for _, path := range slices.Concat(paths, devices) {
		fd, err := unix.OpenTree(unix.AT_FDCWD, path, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE|unix.AT_SYMLINK_NOFOLLOW)
		if err != nil {
			return nil, fmt.Errorf("open %s: %w", path, err)
		}
		var st unix.Stat_t
		if err := unix.Fstat(fd, &st); err != nil {
			return nil, fmt.Errorf("look at %s: %w", path, err)
		}
		b := bind{path: path, fd: fd, folder: st.Mode&unix.S_IFMT == unix.S_IFDIR, device: st.Mode&unix.S_IFMT == unix.S_IFCHR}
		attr := &unix.MountAttr{Attr_set: readFlags, Propagation: unix.MS_PRIVATE}
		if b.device {
			attr.Attr_set = unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NOEXEC
		}
		if err := unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, attr); err != nil {
			return nil, fmt.Errorf("make %s read-only: %w", path, err)
		}
		binds = append(binds, b)
	}
	return binds, nil
}

func attachBinds(binds []bind) error {
	for _, b := range binds {
		if err := makeMountPoint(b); err != nil {
			return err
		}
		if err := attach(b.fd, b.path); err != nil {
			return err
		}
	}
	return nil
}

func makeMountPoint(b bind) error {
	if err := os.MkdirAll(filepath.Dir(b.path), 0o755); err != nil {
		return err
	}
	if b.folder {
		return os.MkdirAll(b.path, 0o755)
	}
	f, err := os.OpenFile(b.path, os.O_CREATE|os.O_RDONLY, 0o644)
	if err != nil {
		return err
	}
	return f.Close()
}

// enter puts the new root over a folder that every host has and makes it the root. The old root is stacked upon it until
// leaveOld.
func enter(root int) error {
	const over = "/proc"
	if err := unix.Mount("", "/", "", unix.MS_PRIVATE|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("keep mounts from spreading: %w", err)
	}
	if err := attach(root, over); err != nil {
		return err
	}
	if err := unix.Chdir(over); err != nil {
		return err
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("pivot: %w", err)
	}
	return nil
}

func leaveOld() error {
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return err
	}
	return unix.Chdir("/")
}

// rootFiles are the few files that libraries look for, none of them the host's.
var rootFiles = map[string]string{
	"/etc/passwd":        "user:x:1000:1000::/home:/bin/sh\n",
	"/etc/group":         "user:x:1000:\n",
	"/etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
	"/etc/hosts":         "127.0.0.1 localhost\n",
}

var rootFolders = []string{"/dev/shm", "/etc", "/proc", "/tmp", "/var", "/home", "/work", "/code", "/run"}

var rootLinks = map[string]string{
	"/dev/fd": "/proc/self/fd", "/dev/stdin": "/proc/self/fd/0", "/dev/stdout": "/proc/self/fd/1",
	"/dev/stderr": "/proc/self/fd/2", "/var/tmp": "/tmp",
}

func layOut(links map[string]string) error {
	for _, folder := range rootFolders {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return err
		}
	}
	for path, content := range rootFiles {
		if err := os.WriteFile(path, []byte(content), 0o444); err != nil {
			return err
		}
	}
	for _, set := range []map[string]string{rootLinks, links} {
		for path, target := range set {
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				return err
			}
			if err := os.Symlink(target, path); err != nil {
				return err
			}
		}
	}
	return nil
}

// Where the trees' folders are mounted. The order matters: inputs and skills lie within work.
var (
	writableMounts = [][2]string{{"work", "/work"}, {"tmp", "/tmp"}, {"home", "/home"}, {"shm", "/dev/shm"}}
	readableMounts = [][2]string{{"inputs", "/work/inputs"}, {"skills", "/work/skills"}, {"code", "/code"}}
)

// place mounts the trees for as long as it takes to clone their parts (older kernels clone nothing of a mount that was
// never placed) and exchanges the mounts for open directories.
func (t *rootTrees) place() error {
	for _, tree := range []*int{&t.writable, &t.readable, &t.proc} {
		if err := attach(*tree, placing); err != nil {
			return err
		}
		fd, err := unix.Open(placing, unix.O_DIRECTORY|unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		*tree = fd
	}
	return nil
}

// placing is where the trees are mounted upon one another while the root is made.
const placing = "/run"

func (t rootTrees) folders() error {
	for _, name := range []string{"work", "work/workspace", "work/inputs", "work/skills", "tmp", "home", "shm"} {
		if err := unix.Mkdirat(t.writable, name, 0o755); err != nil {
			return fmt.Errorf("make %s: %w", name, err)
		}
	}
	for _, m := range readableMounts {
		if err := unix.Mkdirat(t.readable, m[0], 0o755); err != nil {
			return fmt.Errorf("make %s: %w", m[0], err)
		}
	}
	return nil
}

func (t rootTrees) attach() error {
	for _, m := range writableMounts {
		if err := attachPart(t.writable, m[0], m[1], plainFlags); err != nil {
			return err
		}
	}
	for _, m := range readableMounts {
		if err := attachPart(t.readable, m[0], m[1], readFlags); err != nil {
			return err
		}
	}
	if err := attachPart(t.proc, ".", "/proc", readFlags|unix.MOUNT_ATTR_NOEXEC); err != nil {
		return err
	}
	for range 3 {
		if err := unix.Unmount(placing, unix.MNT_DETACH); err != nil {
			return fmt.Errorf("take %s away: %w", placing, err)
		}
	}
	return nil
}

func attachPart(tree int, part, path string, flags uint64) error {
	fd, err := unix.OpenTree(tree, part, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return fmt.Errorf("open %s: %w", path, err)
	}
	if err := unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH, &unix.MountAttr{Attr_set: flags}); err != nil {
		unix.Close(fd)
		return fmt.Errorf("set up %s: %w", path, err)
	}
	return attach(fd, path)
}
