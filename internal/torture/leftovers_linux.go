package torture

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// around is what this process has before a torture.
type around struct{ descriptors int }

// lookAround counts what there is, and has the kernel hand this process whatever its children leave behind.
func lookAround() (around, error) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return around{}, fmt.Errorf("adopt what children leave behind: %w", err)
	}
	n, err := descriptors()
	return around{n}, err
}

func descriptors() (int, error) {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0, fmt.Errorf("count descriptors: %w", err)
	}
	return len(entries), nil
}

// checkLeftovers looks for what the fleet has left behind when all of it has ended: processes, mounts, temporary files,
// descriptors.
func (t *torture) checkLeftovers(before around, folder string) {
	for _, p := range orphans() {
		t.breach("leftovers", "", "a process was left behind: "+p)
	}
	if mounts, err := os.ReadFile("/proc/self/mountinfo"); err != nil {
		t.breach("leftovers", "", err.Error())
	} else if bytes.Contains(mounts, []byte(folder)) {
		t.breach("leftovers", "", "a mount was left behind below "+folder)
	}
	if left, err := os.ReadDir(filepath.Join(folder, temporary)); err != nil {
		t.breach("leftovers", "", err.Error())
	} else if len(left) > 0 {
		t.breach("leftovers", "", fmt.Sprintf("%d temporary files were left behind, %s among them", len(left), left[0].Name()))
	}
	// The poller and the like are opened once and kept.
	if now, err := descriptors(); err != nil || now > before.descriptors+8 {
		t.breach("leftovers", "", fmt.Sprintf("%d descriptors were open before and %d are after (%v)", before.descriptors, now, err))
	}
}

// orphans are the living children of this process, once everything that it started has been waited for.
func orphans() []string {
	var found []string
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return []string{err.Error()}
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		state, parent := status(pid)
		if parent != os.Getpid() {
			continue
		}
		if state == "Z" {
			_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil)
			continue
		}
		command, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline")) // it may just have ended
		found = append(found, fmt.Sprintf("%d %q", pid, bytes.ReplaceAll(command, []byte{0}, []byte{' '})))
	}
	return found
}

// status gives a process's state and parent, from what follows its name in parentheses.
func status(pid int) (state string, parent int) {
	b, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return "", 0
	}
	fields := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	if len(fields) < 2 {
		return "", 0
	}
	parent, _ = strconv.Atoi(fields[1])
	return fields[0], parent
}
