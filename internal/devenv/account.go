package devenv

import (
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// account is the operating system's user that a server runs as.
type account struct {
	name     string
	uid, gid uint32
	other    bool // not this process's own user
}

// serverAccount is this process's own user, unless that is root, as which Postgres refuses to run: then the user asked
// for, else postgres, else nobody.
func serverAccount(name string) (account, error) {
	if os.Geteuid() != 0 {
		return account{uid: uint32(os.Geteuid()), gid: uint32(os.Getegid())}, nil
	}
	names := []string{"postgres", "nobody"}
	if name != "" {
		names = []string{name}
	}
	for _, name := range names {
		found, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, uidErr := strconv.ParseUint(found.Uid, 10, 32)
		gid, gidErr := strconv.ParseUint(found.Gid, 10, 32)
		if uidErr != nil || gidErr != nil || uid == 0 {
			continue
		}
		return account{name: name, uid: uint32(uid), gid: uint32(gid), other: true}, nil
	}
	return account{}, fmt.Errorf("PostgreSQL does not run as root and none of the users %q exists: add one, or run as an ordinary user", names)
}

// own makes the account the owner of a file or folder.
func (a account) own(path string) error {
	if !a.other {
		return nil
	}
	return os.Lchown(path, int(a.uid), int(a.gid))
}

// canEnter tells which folder on the way to path, itself included, the account cannot pass through.
func (a account) canEnter(path string) error {
	if !a.other {
		return nil
	}
	for folder := path; ; folder = filepath.Dir(folder) {
		info, err := os.Stat(folder)
		if err != nil {
			return err
		}
		if stat := info.Sys().(*syscall.Stat_t); info.IsDir() && !a.mayExecute(stat) {
			return fmt.Errorf("the server runs as user %s, who cannot enter %s (mode %04o): chmod o+x %s, or choose another folder",
				a.name, folder, info.Mode().Perm(), folder)
		}
		if folder == filepath.Dir(folder) {
			return nil
		}
	}
}

func (a account) mayExecute(stat *syscall.Stat_t) bool {
	switch {
	case stat.Uid == a.uid:
		return stat.Mode&0o100 != 0
	case stat.Gid == a.gid:
		return stat.Mode&0o010 != 0
	default:
		return stat.Mode&0o001 != 0
	}
}

// attributes start a child as the account, in a process group of its own: an interrupt typed at the terminal reaches
// this process alone, which stops the child in its own order.
func (a account) attributes() *syscall.SysProcAttr {
	attributes := &syscall.SysProcAttr{Setpgid: true}
	if a.other {
		attributes.Credential = &syscall.Credential{Uid: a.uid, Gid: a.gid, Groups: []uint32{a.gid}}
	}
	return attributes
}
