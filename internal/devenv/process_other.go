//go:build unix && !linux

package devenv

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// dieWithParent does nothing: only Linux tells a child that its parent is gone. A server left behind is stopped at the
// next start.
func dieWithParent(*syscall.SysProcAttr) {}

// serversOf lists the server that the pid file names, if it lives.
func serversOf(dataFolder string) ([]serverProcess, error) {
	content, err := os.ReadFile(filepath.Join(dataFolder, "postmaster.pid"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	first, _, _ := bytes.Cut(content, []byte("\n"))
	pid, err := strconv.Atoi(string(bytes.TrimSpace(first)))
	if err != nil || syscall.Kill(pid, 0) != nil {
		return nil, nil
	}
	options, err := os.ReadFile(filepath.Join(dataFolder, "postmaster.opts"))
	if err != nil {
		return nil, err
	}
	return []serverProcess{{pid: pid, main: true, ours: bytes.Contains(options, []byte(ourMark))}}, nil
}
