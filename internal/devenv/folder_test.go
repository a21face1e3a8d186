package devenv

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestOpenFolder(t *testing.T) {
	mine := func(mode os.FileMode) func(t *testing.T, path string) {
		return func(t *testing.T, path string) {
			if err := errors.Join(os.Mkdir(path, 0o700), os.Chmod(path, mode)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, c := range []struct {
		name  string
		below string
		make  func(t *testing.T, path string)
		mode  os.FileMode // of the open folder
		err   string
	}{
		{name: "makes what is missing", below: "a/b/c", mode: folderMode()},
		{name: "leaves the mode of one that is there", make: mine(0o750), mode: 0o750},
		{name: "refuses one that the group may write to", make: mine(0o770), err: "may be written to by others (mode 0770): chmod go-w"},
		{name: "refuses one that all may write to", make: mine(0o702), err: "may be written to by others (mode 0702): chmod go-w"},
		{name: "refuses a file", make: func(t *testing.T, path string) {
			if err := os.WriteFile(path, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}, err: "is not a folder"},
		{name: "follows no link in place of its lock", make: func(t *testing.T, path string) {
			mine(0o700)(t, path)
			if err := os.Symlink(filepath.Join(path, "elsewhere"), filepath.Join(path, "lock")); err != nil {
				t.Fatal(err)
			}
		}, err: "too many levels of symbolic links"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "data", c.below)
			if c.make != nil {
				c.make(t, path)
			}
			folder, err := OpenFolder(path)
			if c.err != "" {
				wantError(t, err, c.err, path)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = folder.Close() }()
			if folder.Path() != path {
				t.Errorf("path: %s, want %s", folder.Path(), path)
			}
			info, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			if info.Mode().Perm() != c.mode {
				t.Errorf("mode: %04o, want %04o", info.Mode().Perm(), c.mode)
			}
		})
	}
}

func TestAFolderThatBelongsToAnotherUserIsRefused(t *testing.T) {
	// The root folder is root's; root itself is told that of a folder given away.
	path := "/"
	if os.Geteuid() == 0 {
		path = t.TempDir()
		if err := os.Chown(path, 65534, 65534); err != nil {
			t.Fatal(err)
		}
	}
	_, err := OpenFolder(path)
	wantError(t, err, path+" belongs to user")
}

func TestAFolderIsOpenOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data")
	first, err := OpenFolder(path)
	if err != nil {
		t.Fatal(err)
	}
	var inUse *FolderInUseError
	if _, err := OpenFolder(path); !errors.As(err, &inUse) || inUse.Path != path || inUse.PID != os.Getpid() {
		t.Fatalf("the second: %v, want it refused as in use by %d", err, os.Getpid())
	}
	if err := errors.Join(first.Close(), first.Close()); err != nil {
		t.Fatal(err)
	}
	second, err := OpenFolder(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := second.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestASecretIsKept(t *testing.T) {
	folder, err := OpenFolder(filepath.Join(t.TempDir(), "data"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = folder.Close() }()
	first, err := folder.Secret("key")
	if err != nil {
		t.Fatal(err)
	}
	if len(first) != 43 {
		t.Errorf("%d characters, want the 43 of 256 bits", len(first))
	}
	if again, err := folder.Secret("key"); err != nil || again != first {
		t.Errorf("another secret under the same name (%v)", err)
	}
	if other, err := folder.Secret("other"); err != nil || other == first {
		t.Errorf("the same secret under another name (%v)", err)
	}
	path := folder.Join("key")
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("mode: %04o, want 0600", info.Mode().Perm())
	}
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	_, err = folder.Secret("key")
	wantError(t, err, "may be read by others (mode 0640): chmod 600 "+path)
	if err := errors.Join(os.Chmod(path, 0o600), os.Truncate(path, 0)); err != nil {
		t.Fatal(err)
	}
	_, err = folder.Secret("key")
	wantError(t, err, path+" is empty")
}

func TestTheServersAccountMustPassThroughEveryFolder(t *testing.T) {
	base := openFolder(t)
	closed := filepath.Join(base, "closed")
	inner := filepath.Join(closed, "inner")
	if err := errors.Join(os.MkdirAll(inner, 0o755), os.Chmod(closed, 0o750)); err != nil {
		t.Fatal(err)
	}
	nobody := account{name: "nobody", uid: 65533, gid: 65533, other: true}
	if err := nobody.canEnter(base); err != nil {
		t.Error(err)
	}
	wantError(t, nobody.canEnter(inner), "runs as user nobody, who cannot enter "+closed+" (mode 0750): chmod o+x "+closed)
	group := account{name: "nobody", uid: 65533, gid: uint32(os.Getegid()), other: true}
	if err := group.canEnter(inner); err != nil {
		t.Error(err)
	}
	owner := account{name: "me", uid: uint32(os.Geteuid()), gid: 65533, other: true}
	if err := owner.canEnter(inner); err != nil {
		t.Error(err)
	}
}
