package attacktest

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"treeline/internal/sandbox/local"
)

func TestMain(m *testing.M) {
	local.MaybeChild()
	os.Exit(m.Run())
}

// ordinaryUser is one that owns nothing here.
const ordinaryUser = 12346

// TestLocal attacks the local driver as whoever runs the tests.
func TestLocal(t *testing.T) {
	d, err := local.New(local.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	Run(t, d)
	fmt.Printf("attacked as user %d\n", os.Geteuid())
}

// TestLocalAsOrdinaryUser attacks the local driver once more as an ordinary user, where the tests run as root: a driver that
// can be run as one of the two alone fails here.
func TestLocalAsOrdinaryUser(t *testing.T) {
	if os.Geteuid() != 0 {
		return // TestLocal has just run as one
	}
	folder, err := os.MkdirTemp("", "treeline-attack")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	if err := os.Chmod(folder, 0o777); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), copySelf(t, folder), "-test.run=^TestLocal$", "-test.v", "-test.timeout=280s")
	cmd.Dir = folder
	cmd.Env = []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=" + folder, "TMPDIR=" + folder}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Credential: &syscall.Credential{Uid: ordinaryUser, Gid: ordinaryUser, Groups: []uint32{}}, Pdeathsig: syscall.SIGKILL,
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err = cmd.Run()
	if err != nil || !strings.Contains(out.String(), fmt.Sprintf("attacked as user %d\n", ordinaryUser)) || !strings.Contains(out.String(), "--- PASS: TestLocal ") {
		t.Errorf("as user %d: %v\n%s", ordinaryUser, err, failures(out.String()))
	}
}

// copySelf copies this binary to where everybody can execute it.
func copySelf(t *testing.T, folder string) string {
	t.Helper()
	from, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	path := filepath.Join(folder, "attack.test")
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
