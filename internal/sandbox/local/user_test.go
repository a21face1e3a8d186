package local

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// ordinaryUser is one that owns nothing here.
const ordinaryUser = 12345

// TestAsOrdinaryUser runs this package's other tests once more as an ordinary user, where they run as root: a worker that
// is root first becomes another user and hands files over between the two, one that is not does neither.
func TestAsOrdinaryUser(t *testing.T) {
	if os.Geteuid() != 0 {
		return // the others have just run as one
	}
	folder, err := os.MkdirTemp("", "treeline-sandbox-test")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	binary := copyBinary(t, folder)
	cmd := exec.CommandContext(t.Context(), binary, "-test.run=^(TestConformance|TestUser.*)$", "-test.v", "-test.timeout=120s")
	cmd.Dir = folder
	cmd.Env = []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=" + folder, "TMPDIR=" + folder}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Credential: &syscall.Credential{Uid: ordinaryUser, Gid: ordinaryUser, Groups: []uint32{}},
		Pdeathsig:  syscall.SIGKILL,
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		t.Errorf("as user %d: %v\n%s", ordinaryUser, err, failures(out.String()))
	}
	if !strings.Contains(out.String(), "--- PASS: TestConformance") {
		t.Errorf("the suite did not run: %s", out.String())
	}
}

func copyBinary(t *testing.T, folder string) string {
	t.Helper()
	if err := os.Chmod(folder, 0o777); err != nil {
		t.Fatal(err)
	}
	from, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	path := filepath.Join(folder, "sandbox.test")
	to, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(to, from); err != nil {
		t.Fatal(err)
	}
	if err := to.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// failures leaves out what passed.
func failures(out string) string {
	var kept []string
	for line := range strings.Lines(out) {
		if !strings.Contains(line, "=== ") && !strings.Contains(line, "--- PASS") {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "")
}
