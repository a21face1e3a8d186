// Package devenv runs the services that Treeline needs on one machine: a private Postgres server over a data folder and
// an embedded NATS server with JetStream. Neither needs an administrator, a configured service or a fixed port, and
// neither outlives the process that started it.
package devenv

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	lockName   = "lock"
	secretMode = 0o600
)

// FolderInUseError refuses a data folder that another process, or another part of this one, has open.
type FolderInUseError struct {
	Path string
	PID  int // of the holder; 0 where it is not known
}

func (e *FolderInUseError) Error() string {
	if e.PID == 0 {
		return fmt.Sprintf("the data folder %s is in use by another process: stop that one, or choose another folder", e.Path)
	}
	return fmt.Sprintf("the data folder %s is in use by process %d: stop that one, or choose another folder", e.Path, e.PID)
}

// Folder is a data folder that this process alone has open, from OpenFolder until Close or the process's end.
type Folder struct {
	path string
	lock *os.File
}

// DefaultFolder is where data goes if nobody says otherwise: /var/lib/treeline for root, whose home no other user can
// enter and whose database runs as another user, else treeline in the user's data folder.
func DefaultFolder() (string, error) {
	if os.Geteuid() == 0 {
		return "/var/lib/treeline", nil
	}
	if base := os.Getenv("XDG_DATA_HOME"); filepath.IsAbs(base) {
		return filepath.Join(base, "treeline"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("finding a data folder: %w", err)
	}
	return filepath.Join(home, ".local", "share", "treeline"), nil
}

// folderMode is 0700; for root 0711, since the database server is another user there and must pass through. What is
// secret below it has a mode of its own.
func folderMode() fs.FileMode {
	if os.Geteuid() == 0 {
		return 0o711
	}
	return 0o700
}

// OpenFolder makes the folder if it is missing (0700; 0711 for root, so that the database's own user may pass through)
// and locks it. It gives a *FolderInUseError where the folder is locked, and refuses one that belongs to another user or
// that others may write to.
func OpenFolder(path string) (*Folder, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("opening the data folder: %w", err)
	}
	if err := makeFolder(path); err != nil {
		return nil, fmt.Errorf("opening the data folder: %w", err)
	}
	// The pid file of a folder is only ever opened as a plain file: whoever could plant a link here could write elsewhere.
	lock, err := os.OpenFile(filepath.Join(path, lockName), os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, secretMode)
	if err != nil {
		return nil, fmt.Errorf("opening the data folder: %w", err)
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		defer func() { _ = lock.Close() }()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, &FolderInUseError{Path: path, PID: readPID(lock)}
		}
		return nil, fmt.Errorf("locking %s: %w", lock.Name(), err)
	}
	if err := writePID(lock); err != nil {
		_ = lock.Close()
		return nil, fmt.Errorf("writing %s: %w", lock.Name(), err)
	}
	return &Folder{path: path, lock: lock}, nil
}

func makeFolder(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	err := os.Mkdir(path, folderMode())
	if err == nil {
		return os.Chmod(path, folderMode()) // whatever the umask is
	}
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	return checkFolder(path)
}

func checkFolder(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is not a folder", path)
	}
	if owner := info.Sys().(*syscall.Stat_t).Uid; int(owner) != os.Geteuid() {
		return fmt.Errorf("%s belongs to user %d and this is user %d: choose another folder", path, owner, os.Geteuid())
	}
	if info.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("%s may be written to by others (mode %04o): chmod go-w %s", path, info.Mode().Perm(), path)
	}
	return nil
}

func readPID(lock *os.File) int {
	buf := make([]byte, 32)
	n, _ := lock.ReadAt(buf, 0)
	pid, err := strconv.Atoi(strings.TrimSpace(string(buf[:n])))
	if err != nil {
		return 0
	}
	return pid
}

func writePID(lock *os.File) error {
	if err := lock.Truncate(0); err != nil {
		return err
	}
	_, err := lock.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	return err
}

// Path is the folder's absolute path.
func (f *Folder) Path() string { return f.path }

// Join is a path below the folder.
func (f *Folder) Join(parts ...string) string {
	return filepath.Join(append([]string{f.path}, parts...)...)
}

// Secret gives the secret of that name, made of 256 random bits at first use and kept in a file of mode 0600. It fails
// where the file may be read by others.
func (f *Folder) Secret(name string) (string, error) {
	path := f.Join(name)
	secret, err := readSecret(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return secret, err
	}
	secret = newSecret()
	if err := writeSecret(path, secret); err != nil {
		return "", fmt.Errorf("keeping a secret: %w", err)
	}
	return secret, nil
}

// Keep puts a secret in a file of mode 0600, in place of what the file held.
func (f *Folder) Keep(name, secret string) error {
	if err := writeSecret(f.Join(name), secret); err != nil {
		return fmt.Errorf("keeping a secret: %w", err)
	}
	return nil
}

func newSecret() string {
	raw := make([]byte, 32)
	_, _ = rand.Read(raw) // documented never to fail
	return base64.RawURLEncoding.EncodeToString(raw)
}

func readSecret(path string) (string, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return "", fmt.Errorf("reading a secret: %w", err)
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil {
		return "", fmt.Errorf("reading a secret: %w", err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return "", fmt.Errorf("the secret in %s may be read by others (mode %04o): chmod 600 %s", path, info.Mode().Perm(), path)
	}
	buf := make([]byte, 1024)
	n, _ := file.Read(buf)
	secret := strings.TrimSpace(string(buf[:n]))
	if secret == "" {
		return "", fmt.Errorf("the secret in %s is empty", path)
	}
	return secret, nil
}

// writeSecret puts the whole file in place at once, so that a process killed midway leaves none.
func writeSecret(path, secret string) error {
	temporary := path + ".new"
	if err := os.Remove(temporary); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	file, err := os.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, secretMode)
	if err != nil {
		return err
	}
	_, err = file.WriteString(secret + "\n")
	err = errors.Join(err, file.Sync(), file.Close())
	if err != nil {
		return err
	}
	return os.Rename(temporary, path)
}

// Close gives the folder free. Closing twice is fine.
func (f *Folder) Close() error {
	if f == nil || f.lock == nil {
		return nil
	}
	lock := f.lock
	f.lock = nil
	if err := lock.Close(); err != nil {
		return fmt.Errorf("closing the data folder: %w", err)
	}
	return nil
}
