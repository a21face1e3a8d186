package local

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"treeline/internal/sandbox"
)

// ownMemory and ownProcesses are what init may use beside its program, which the groups count in.
const (
	ownMemory    = 64 << 20
	ownProcesses = 16
)

// cgroup is a session's own group below each folder that the driver was given: one for version 2, one a controller for
// version 1. The nil group limits nothing.
type cgroup struct{ folders []string }

// newCgroup makes the groups and sets their limits. A folder in which no limit can be set is an error: what was asked for
// is not left out in silence.
func newCgroup(parents []string, name string, l sandbox.Limits) (*cgroup, error) {
	if len(parents) == 0 {
		return nil, nil
	}
	g := &cgroup{}
	for _, parent := range parents {
		if err := g.add(parent, name, l); err != nil {
			return nil, errors.Join(err, g.remove())
		}
	}
	return g, nil
}

func (g *cgroup) add(parent, name string, l sandbox.Limits) error {
	if _, err := os.Stat(filepath.Join(parent, "cgroup.controllers")); err == nil {
		if err := setFile(filepath.Join(parent, "cgroup.subtree_control"), "+memory +pids"); err != nil {
			return fmt.Errorf("hand controllers on in %s: %w", parent, err)
		}
	}
	folder := filepath.Join(parent, name)
	if err := os.Mkdir(folder, 0o755); err != nil {
		return fmt.Errorf("make a cgroup: %w", err)
	}
	g.folders = append(g.folders, folder)
	return limitCgroup(folder, l)
}

func limitCgroup(folder string, l sandbox.Limits) error {
	memory, processes := strconv.FormatInt(l.Memory+ownMemory, 10), strconv.Itoa(l.Processes+ownProcesses)
	set := 0
	for _, limit := range [][2]string{
		{"memory.max", memory}, {"memory.swap.max", "0"}, {"memory.oom.group", "1"}, {"memory.limit_in_bytes", memory}, {"pids.max", processes},
	} {
		err := setFile(filepath.Join(folder, limit[0]), limit[1])
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("limit a cgroup: %w", err)
		}
		set++
	}
	if set == 0 {
		return fmt.Errorf("limit a cgroup: %s has neither memory nor pids", folder)
	}
	return nil
}

// setFile writes to a file that must be there.
func setFile(path, value string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(value)
	return errors.Join(err, f.Close())
}

// enter moves a process, and with it what it will start, into the groups.
func (g *cgroup) enter(pid int) error {
	if g == nil {
		return nil
	}
	for _, folder := range g.folders {
		if err := setFile(filepath.Join(folder, "cgroup.procs"), strconv.Itoa(pid)); err != nil {
			return fmt.Errorf("enter a cgroup: %w", err)
		}
	}
	return nil
}

// remove removes the groups once their processes are dead. The kernel may take a moment to notice.
func (g *cgroup) remove() error {
	if g == nil {
		return nil
	}
	var failed error
	for _, folder := range g.folders {
		var err error
		for deadline := time.Now().Add(2 * time.Second); time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
			if err = os.Remove(folder); err == nil || errors.Is(err, fs.ErrNotExist) {
				err = nil
				break
			}
		}
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("remove a cgroup: %w", err))
		}
	}
	g.folders = nil
	return failed
}

// cgroupFolders splits the setting: folders, separated by commas.
func cgroupFolders(setting string) []string {
	var folders []string
	for folder := range strings.SplitSeq(setting, ",") {
		if folder = strings.TrimSpace(folder); folder != "" {
			folders = append(folders, folder)
		}
	}
	return folders
}
