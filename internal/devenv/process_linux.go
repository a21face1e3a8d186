package devenv

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// dieWithParent has the kernel ask for a fast shutdown (SIGINT) when this process is gone, however it went.
func dieWithParent(attributes *syscall.SysProcAttr) { attributes.Pdeathsig = syscall.SIGINT }

// serversOf lists the processes of Postgres servers, orphaned ones included, that work in a data folder: the server and
// each of its children has the folder as its working folder, whatever the pid file says.
func serversOf(dataFolder string) ([]serverProcess, error) {
	data, err := filepath.EvalSymlinks(dataFolder)
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	var found []serverProcess
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		// A process may end at any moment, and others' cannot be looked at: neither is one of ours.
		folder := filepath.Join("/proc", entry.Name())
		if cwd, err := os.Readlink(filepath.Join(folder, "cwd")); err != nil || cwd != data {
			continue
		}
		command, err := os.ReadFile(filepath.Join(folder, "cmdline"))
		if err != nil || len(command) == 0 {
			continue
		}
		if name, err := os.ReadFile(filepath.Join(folder, "comm")); err != nil || string(bytes.TrimSpace(name)) != "postgres" {
			continue
		}
		child := bytes.HasPrefix(command, []byte("postgres: ")) // its title, in place of its command line
		mark := ourMark
		if child {
			mark = ourTitle
		}
		found = append(found, serverProcess{pid: pid, main: !child, ours: bytes.Contains(command, []byte(mark))})
	}
	return found, nil
}
