package torture

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rs/zerolog"
)

// toBeKilled is the name under which this binary is executed as a torture that is to be killed.
const toBeKilled = "treeline-torture-to-be-killed"

func beKilled() {
	_, err := Run(context.Background(), Config{Seconds: 120, Seed: 1, Conversations: 4, CodeWorkers: 1,
		Faults: []string{"fileworker-stopped"}, Log: zerolog.New(os.Stderr)})
	fmt.Fprintln(os.Stderr, "a torture that was to be killed ended:", err)
	os.Exit(1)
}

// descendants are all processes that a process has started, and those that these have, with the times of their start, by
// which one is told from another that has its number later.
func descendants(t *testing.T, of int) map[int]string {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	parents, starts := map[int]int{}, map[int]string{}
	for _, stat := range stats {
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(stat)))
		if err != nil {
			continue
		}
		_, parents[pid] = status(pid)
		starts[pid] = startOf(pid)
	}
	found := map[int]string{}
	for pid := range parents {
		for up := pid; up > 1; up = parents[up] {
			if parents[up] == of {
				found[pid] = starts[pid]
				break
			}
		}
	}
	return found
}

// startOf gives when a living process started, "" where there is none.
func startOf(pid int) string {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	fields := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	if len(fields) < 20 || fields[0] == "Z" {
		return ""
	}
	return fields[19]
}

func TestATortureThatIsKilledLeavesNothingRunningOrMounted(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := &exec.Cmd{Path: self, Args: []string{toBeKilled}, SysProcAttr: &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	folder, struck := "", false
	lines := bufio.NewScanner(stderr)
	for !struck && lines.Scan() { // the whole fleet runs, and a process of it has just been stopped
		var line struct{ Folder, Message string }
		if json.Unmarshal(lines.Bytes(), &line) == nil && line.Message == "PostgreSQL is running" {
			folder = filepath.Dir(filepath.Dir(line.Folder))
		}
		struck = line.Message == "strike"
	}
	if !struck || folder == "" {
		_ = cmd.Process.Kill()
		t.Fatalf("the torture did not begin: %v", cmd.Wait())
	}
	time.Sleep(200 * time.Millisecond)
	family := descendants(t, cmd.Process.Pid)
	if len(family) < 8 { // two dispatchers, two file workers, a code worker, NATS, Postgres and its own
		t.Errorf("%d processes run", len(family))
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // killed
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		var left []int
		for pid, start := range family {
			if start != "" && startOf(pid) == start {
				left = append(left, pid)
			}
		}
		if len(left) == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the processes %v are left of it", left)
		}
	}
	if mounts, err := os.ReadFile("/proc/self/mountinfo"); err != nil || bytes.Contains(mounts, []byte(folder)) {
		t.Errorf("a mount is left of it, or cannot be looked for (%v)", err)
	}
	if err := removeDead(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(folder); !os.IsNotExist(err) {
		t.Errorf("its folder is left: %v", err)
	}
}

func TestOnlyWhatWasKilledIsRemoved(t *testing.T) {
	var folders []string
	for range 3 {
		folders = append(folders, folder(t))
	}
	running, dead, ended := folders[0], folders[1], folders[2]
	end, err := markRunning(running)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dead, runningName), nil, 0o600); err != nil { // nobody has locked it
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(ended, "dispatcher-1.log"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	there := func() (left []string) {
		for _, f := range folders {
			if _, err := os.Stat(f); err == nil {
				left = append(left, f)
			}
		}
		return left
	}
	if err := removeDead(); err != nil {
		t.Fatal(err)
	}
	if got := there(); !slices.Equal(got, []string{running, ended}) {
		t.Errorf("left are %v of %v", got, folders)
	}
	if err := end(); err != nil {
		t.Fatal(err)
	}
	if err := removeDead(); err != nil {
		t.Fatal(err)
	}
	if got := there(); !slices.Equal(got, []string{running, ended}) {
		t.Errorf("left are %v of %v once all have ended", got, folders)
	}
}
