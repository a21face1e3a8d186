package local

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"runtime"
	"strings"

	"treeline/internal/sandbox"

	"golang.org/x/sys/unix"
)

// prelude is what every interpreter in the sandbox runs first: output goes out line by line, so that what was printed
// before a kill is not lost in a buffer.
//
//go:embed prelude.py
var prelude []byte

// filler writes files into the trees before the program runs.
type filler struct {
	writable, readable int
	owner              int // the trees' owner
	inputsLeft         int64
	folders            map[string]bool // made already, by tree and path
	buffer             []byte
}

func newFiller(trees [2]*os.File, inputs int64) filler {
	f := filler{writable: int(trees[0].Fd()), readable: int(trees[1].Fd()), inputsLeft: inputs}
	f.folders = map[string]bool{"w/work/workspace": true, "r/inputs": true, "r/skills": true, "r/code": true, "w/home": true}
	f.owner = os.Geteuid()
	var st unix.Stat_t
	if err := unix.Fstat(f.writable, &st); err == nil {
		f.owner = int(st.Uid)
	}
	return f
}

// program puts the code where the interpreter finds it.
func (f *filler) program(code []byte) error {
	return asOwner(f.owner, func() error {
		if err := f.write(context.Background(), f.readable, "code/sitecustomize.py", bytes.NewReader(prelude)); err != nil {
			return err
		}
		return f.write(context.Background(), f.readable, "code/main.py", bytes.NewReader(code))
	})
}

// fonts saves matplotlib looking for fonts.
func (f *filler) fonts(lists map[string][]byte) error {
	if len(lists) == 0 {
		return nil
	}
	return asOwner(f.owner, func() error {
		if err := f.makeFolders(f.writable, "w/", fontsFolder); err != nil {
			return fmt.Errorf("put the fonts: %w", err)
		}
		for name, body := range lists {
			if err := f.write(context.Background(), f.writable, fontsFolder+"/"+name, bytes.NewReader(body)); err != nil {
				return fmt.Errorf("put the fonts: %w", err)
			}
		}
		return nil
	})
}

// fontsFolder is where, in the writable tree, matplotlib keeps its lists; the program's environment says so too.
const fontsFolder = "home/matplotlib"

func (f *filler) put(ctx context.Context, name string, content io.Reader) error {
	if reason := badPath(name); reason != "" {
		return &sandbox.PathError{Path: name, Reason: reason}
	}
	tree, prefix, at := f.writable, "w/", "work/"+name
	counted := content
	if !strings.HasPrefix(name, sandbox.Workspace+"/") {
		tree, prefix, at = f.readable, "r/", name
		counted = &budget{from: content, left: &f.inputsLeft}
	}
	return asOwner(f.owner, func() error {
		if err := f.makeFolders(tree, prefix, path.Dir(at)); err != nil {
			return pathError(name, err)
		}
		return pathError(name, f.write(ctx, tree, at, counted))
	})
}

// badPath says what is wrong with a path to put to, "" if nothing.
func badPath(name string) string {
	top, rest, _ := strings.Cut(name, "/")
	if top != sandbox.Workspace && top != sandbox.Inputs && top != sandbox.Skills || rest == "" {
		return "it lies in none of workspace/, inputs/ and skills/"
	}
	if path.Clean(name) != name || strings.ContainsRune(name, 0) {
		return "it is not a plain relative path"
	}
	return ""
}

func pathError(name string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT), errors.Is(err, sandbox.ErrFull):
		return fmt.Errorf("put %q: %w", name, sandbox.ErrFull)
	case errors.Is(err, unix.ENOTDIR):
		return &sandbox.PathError{Path: name, Reason: "a file is where its folder would be"}
	case errors.Is(err, unix.EISDIR):
		return &sandbox.PathError{Path: name, Reason: "a folder is there"}
	case errors.Is(err, unix.ENAMETOOLONG):
		return &sandbox.PathError{Path: name, Reason: "it is too long"}
	}
	return fmt.Errorf("put %q: %w", name, err)
}

func (f *filler) makeFolders(tree int, prefix, folder string) error {
	if folder == "." || f.folders[prefix+folder] {
		return nil
	}
	if err := f.makeFolders(tree, prefix, path.Dir(folder)); err != nil {
		return err
	}
	if err := unix.Mkdirat(tree, folder, 0o755); err != nil && !errors.Is(err, unix.EEXIST) {
		return err
	}
	f.folders[prefix+folder] = true
	return nil
}

// beneath opens within a tree and follows no link; nothing runs yet, so that none is there.
func beneath(tree int, name string, flags, mode uint64) (int, error) {
	return unix.Openat2(tree, name, &unix.OpenHow{
		Flags: flags | unix.O_CLOEXEC, Mode: mode, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_XDEV,
	})
}

func (f *filler) write(ctx context.Context, tree int, name string, content io.Reader) error {
	fd, err := beneath(tree, name, unix.O_WRONLY|unix.O_CREAT|unix.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if f.buffer == nil {
		f.buffer = make([]byte, 128<<10)
	}
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, readErr := content.Read(f.buffer)
		for b := f.buffer[:n]; len(b) > 0; {
			w, err := unix.Write(fd, b)
			if err != nil {
				return err
			}
			b = b[w:]
		}
		if readErr == io.EOF {
			return nil
		}
		if readErr != nil {
			return readErr
		}
	}
}

// budget fails a reader that gives more than is left.
type budget struct {
	from io.Reader
	left *int64
}

func (b *budget) Read(p []byte) (int, error) {
	n, err := b.from.Read(p)
	if *b.left -= int64(n); *b.left < 0 {
		return 0, sandbox.ErrFull
	}
	return n, err
}

// asOwner runs f on a thread that makes files as the trees' owner: their file system knows no other, so that root itself
// could make none.
func asOwner(owner int, f func() error) error {
	if owner == os.Geteuid() {
		return f()
	}
	runtime.LockOSThread()
	setFilesystemIDs(owner, owner)
	err := f()
	if uid, gid := setFilesystemIDs(os.Geteuid(), os.Getegid()); uid != owner || gid != owner {
		return errors.Join(err, fmt.Errorf("become user %d on the file system: it was %d, group %d", owner, uid, gid))
	}
	runtime.UnlockOSThread() // else the thread, which is neither one user nor the other, ends with its goroutine
	return err
}

// setFilesystemIDs changes the calling thread alone and gives what it was.
func setFilesystemIDs(uid, gid int) (formerUID, formerGID int) {
	g, _, _ := unix.RawSyscall(unix.SYS_SETFSGID, uintptr(gid), 0, 0)
	u, _, _ := unix.RawSyscall(unix.SYS_SETFSUID, uintptr(uid), 0, 0)
	return int(u), int(g)
}
