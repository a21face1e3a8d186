package local

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"slices"
	"strings"

	"treeline/internal/sandbox"

	"golang.org/x/sys/unix"
)

// Take reads the tree. Every process is dead by then.
func (s *Session) Take(ctx context.Context) (sandbox.Tree, error) {
	if !s.ran || s.closed {
		return sandbox.Tree{}, &sandbox.TreeUnreadable{Err: errors.New("nothing has run, or the session is closed")}
	}
	select {
	case <-s.gone:
	default:
		return sandbox.Tree{}, &sandbox.TreeUnreadable{Err: errors.New("the run goes on")}
	}
	if s.lost {
		return sandbox.Tree{}, &sandbox.TreeUnreadable{Err: sandbox.ErrLost}
	}
	w := walk{root: int(s.trees[0].Fd()), limits: s.limits, buffer: make([]byte, 128<<10)}
	tree, err := w.tree(ctx)
	if err != nil {
		return sandbox.Tree{}, err
	}
	s.taken = &tree
	return tree, nil
}

// walk reads a tree that nobody writes any more, following no link: each folder is opened from the root by its path,
// so that one descriptor is open at a time however deep the tree is. Paths are bounded, and with them the depth.
type walk struct {
	root   int
	limits sandbox.Limits
	buffer []byte
	hasher hash.Hash
	result sandbox.Tree
	bytes  int64
	files  int
}

const (
	workspaceRoot = "work/" + sandbox.Workspace
	outsideRoot   = "work"
)

func (w *walk) tree(ctx context.Context) (sandbox.Tree, error) {
	w.hasher = sha256.New()
	if err := w.unlock(outsideRoot); err != nil {
		return sandbox.Tree{}, unreadable("", err)
	}
	if err := w.inside(ctx); err != nil {
		return sandbox.Tree{}, unreadable("", err)
	}
	if err := w.outside(ctx); err != nil {
		return sandbox.Tree{}, unreadable("", err)
	}
	if w.tooLarge() {
		return sandbox.Tree{}, &sandbox.TreeTooLarge{Bytes: w.bytes, Files: w.files}
	}
	slices.SortFunc(w.result.Files, func(a, b sandbox.File) int { return strings.Compare(a.Path, b.Path) })
	slices.SortFunc(w.result.Ignored, func(a, b sandbox.Ignored) int { return strings.Compare(a.Path, b.Path) })
	slices.Sort(w.result.Outside)
	w.result.Manifest = sandbox.NewManifest(w.result.Files)
	if w.result.Manifest.Files != w.files || w.result.Manifest.Bytes != w.bytes {
		return sandbox.Tree{}, unreadable("", fmt.Errorf("%d files of %d bytes were counted, %d of %d read",
			w.files, w.bytes, w.result.Manifest.Files, w.result.Manifest.Bytes))
	}
	return w.result, nil
}

func (w *walk) tooLarge() bool {
	return w.bytes > w.limits.TreeBytes || w.files > w.limits.TreeFiles
}

func unreadable(path string, err error) error {
	var already *sandbox.TreeUnreadable
	if errors.As(err, &already) {
		return err
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return &sandbox.TreeUnreadable{Path: path, Err: err}
}

// inside reads workspace/. A program that removed the folder itself has removed every file; one that put something else
// in its place has left no tree.
func (w *walk) inside(ctx context.Context) error {
	kind, err := w.kindAt(workspaceRoot)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return err
	}
	if kind != unix.S_IFDIR {
		return errors.New("workspace is no folder any more")
	}
	pending := []string{""}
	for len(pending) > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		folder := pending[len(pending)-1]
		pending = pending[:len(pending)-1]
		more, err := w.folder(folder)
		if err != nil {
			return unreadable(folder, err)
		}
		pending = append(pending, more...)
	}
	return nil
}

// folder reads one folder's entries and gives those that are folders.
func (w *walk) folder(folder string) ([]string, error) {
	dir, names, err := w.open(join(workspaceRoot, folder))
	if err != nil {
		return nil, err
	}
	defer unix.Close(dir)
	var folders []string
	for _, name := range names {
		path := join(folder, name)
		var st unix.Stat_t
		if err := unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
			return nil, unreadable(path, err)
		}
		kind := st.Mode & unix.S_IFMT
		switch {
		case len(path) > w.limits.PathBytes:
			w.ignore(path, "its path is too long")
		case kind == unix.S_IFDIR:
			folders = append(folders, path)
		case kind != unix.S_IFREG:
			w.ignore(path, kindReason(kind))
		default:
			if err := w.file(dir, name, path, st); err != nil {
				return nil, unreadable(path, err)
			}
		}
	}
	return folders, nil
}

func (w *walk) ignore(path, reason string) {
	if len(w.result.Ignored) == sandbox.MaxListed {
		w.result.IgnoredMore++
		return
	}
	w.result.Ignored = append(w.result.Ignored, sandbox.Ignored{Path: path, Reason: reason})
}

func kindReason(kind uint32) string {
	switch kind {
	case unix.S_IFLNK:
		return "it is a symbolic link"
	case unix.S_IFIFO:
		return "it is a named pipe"
	case unix.S_IFSOCK:
		return "it is a socket"
	}
	return "it is a device"
}

// file hashes one file, unless the tree is too large already and only counts.
func (w *walk) file(dir int, name, path string, st unix.Stat_t) error {
	w.files++
	w.bytes += st.Size
	if w.tooLarge() {
		return nil
	}
	fd, err := openFile(dir, name, &st)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	w.hasher.Reset()
	size, err := w.feed(fd)
	if err != nil {
		return err
	}
	if size != st.Size {
		return fmt.Errorf("it has %d bytes and gave %d", st.Size, size)
	}
	f := sandbox.File{Path: path, Size: size}
	w.hasher.Sum(f.SHA256[:0])
	w.result.Files = append(w.result.Files, f)
	return nil
}

func (w *walk) feed(fd int) (int64, error) {
	var size int64
	for {
		n, err := unix.Read(fd, w.buffer)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return size, err
		}
		if n == 0 {
			return size, nil
		}
		w.hasher.Write(w.buffer[:n])
		size += int64(n)
	}
}

// openFile opens the regular file that st describes, and nothing that took its place. What its owner may not read he may
// make readable.
func openFile(dir int, name string, st *unix.Stat_t) (int, error) {
	if st.Mode&0o400 == 0 {
		if err := unix.Fchmodat(dir, name, st.Mode&0o777|0o400, 0); err != nil {
			return -1, err
		}
	}
	fd, err := beneath(dir, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return -1, err
	}
	var now unix.Stat_t
	if err := unix.Fstat(fd, &now); err != nil {
		unix.Close(fd)
		return -1, err
	}
	if now.Ino != st.Ino || now.Mode&unix.S_IFMT != unix.S_IFREG {
		unix.Close(fd)
		return -1, errors.New("it is not the file it was")
	}
	return fd, nil
}

func (w *walk) kindAt(path string) (uint32, error) {
	var st unix.Stat_t
	err := unix.Fstatat(w.root, path, &st, unix.AT_SYMLINK_NOFOLLOW)
	return st.Mode & unix.S_IFMT, err
}

// open opens a folder by its path below the root and lists it.
func (w *walk) open(path string) (int, []string, error) {
	if err := w.unlock(path); err != nil {
		return -1, nil, err
	}
	dir, err := beneath(w.root, path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return -1, nil, err
	}
	names, err := w.list(dir)
	if err != nil {
		unix.Close(dir)
		return -1, nil, err
	}
	return dir, names, nil
}

// unlock makes a folder that its owner may not read one that he may.
func (w *walk) unlock(path string) error {
	fd, err := beneath(w.root, path, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Mode&0o700 == 0o700 {
		return err
	}
	return unix.Fchmodat(w.root, path, st.Mode&0o777|0o700, 0)
}

func (w *walk) list(dir int) ([]string, error) {
	var names []string
	for {
		n, err := unix.ReadDirent(dir, w.buffer)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return nil, err
		}
		if n <= 0 {
			return names, nil
		}
		_, _, names = unix.ParseDirent(w.buffer[:n], -1, names)
	}
}

func join(folder, name string) string {
	if folder == "" {
		return name
	}
	if name == "" {
		return folder
	}
	return folder + "/" + name
}
