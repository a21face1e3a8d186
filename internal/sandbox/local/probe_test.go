package local

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"treeline/internal/sandbox"

	"golang.org/x/sys/unix"
)

func TestUserProbe(t *testing.T) {
	r, err := newDriver(t).Probe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if r.Driver != "local" || len(r.Enforced) < 6 || !strings.HasPrefix(r.Python.Version, "3.") || !filepath.IsAbs(r.Python.Path) {
		t.Errorf("got %+v", r)
	}
	for _, g := range r.Missing {
		if g.What == "" || g.Reason == "" || g.Remedy == "" {
			t.Errorf("gap %+v says too little", g)
		}
	}
}

func TestUserPythonThatIsNot(t *testing.T) {
	for _, python := range []string{"/nowhere/python3", "/bin/sh", "/dev/null"} {
		d, err := New(Options{Python: python})
		if err != nil {
			t.Fatal(err)
		}
		_, err = d.Probe(t.Context())
		var unavailable *sandbox.Unavailable
		if !errors.As(err, &unavailable) || !strings.Contains(unavailable.Reason, python) {
			t.Errorf("%s: %v, want unavailable naming it", python, err)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestRemedy(t *testing.T) {
	tests := []struct {
		name     string
		files    map[string]string
		major    int
		minor    int
		err      error
		contains string
	}{
		{"old kernel", nil, 5, 11, unix.ENOSYS, "Linux 5.12 or later"},
		{"older kernel", nil, 4, 19, unix.ENOSYS, "the kernel is 4.19"},
		{"user namespaces off", map[string]string{"sys/user/max_user_namespaces": "0\n"}, 6, 1, unix.ENOSPC, "sysctl -w user.max_user_namespaces="},
		{"unprivileged off", map[string]string{"sys/kernel/unprivileged_userns_clone": "0\n"}, 6, 1, unix.EPERM,
			"sysctl -w kernel.unprivileged_userns_clone=1"},
		{"apparmor", map[string]string{"sys/kernel/apparmor_restrict_unprivileged_userns": "1\n", "sys/kernel/unprivileged_userns_clone": "1\n"},
			6, 8, unix.EACCES, "kernel.apparmor_restrict_unprivileged_userns=0"},
		{"docker", map[string]string{"self/status": "Name:\tx\nSeccomp:\t2\n"}, 6, 1, unix.EPERM, "seccomp=unconfined"},
		{"nested", map[string]string{"self/status": "Seccomp:\t0\n"}, 6, 1, unix.EUSERS, "user.max_user_namespaces"},
		{"unknown", nil, 6, 1, unix.EPERM, "LSM"},
		{"something else", nil, 6, 1, unix.ENOENT, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			root := t.TempDir()
			for name, content := range tt.files {
				path := filepath.Join(root, "proc", name)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			got := machine{root: root, major: tt.major, minor: tt.minor}.remedy(asStep("try", tt.err))
			if !strings.Contains(got, tt.contains) || tt.contains == "" && got != "" {
				t.Errorf("got %q, want %q in it", got, tt.contains)
			}
		})
	}
}

func TestRemedyForTheLauncher(t *testing.T) {
	for errno, contains := range map[error]string{unix.EACCES: "chmod 755", unix.EPERM: "CAP_SETUID", unix.EINVAL: "CAP_SETUID"} {
		if got := (machine{}).remedy(asStep(launcherStep, errno)); !strings.Contains(got, contains) {
			t.Errorf("%v: %q, want %q in it", errno, got, contains)
		}
	}
}

// TestUserWithoutNamespaces tries the driver where the kernel allows no more user namespaces: it must refuse, name the
// setting, and run nothing.
func TestUserWithoutNamespaces(t *testing.T) {
	if os.Getenv("SANDBOX_TEST_NO_NAMESPACES") != "" {
		withoutNamespaces(t)
		return
	}
	cmd := exec.Command("/proc/self/exe", "-test.run=^TestUserWithoutNamespaces$", "-test.v")
	cmd.Env = append(os.Environ(), "SANDBOX_TEST_NO_NAMESPACES=1")
	own := []syscall.SysProcIDMap{{ContainerID: 4711, HostID: os.Geteuid(), Size: 1}}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWUSER, UidMappings: own, GidMappings: []syscall.SysProcIDMap{{ContainerID: 4711, HostID: os.Getegid(), Size: 1}},
		AmbientCaps: []uintptr{unix.CAP_SYS_RESOURCE, unix.CAP_DAC_OVERRIDE}, Pdeathsig: syscall.SIGKILL,
	}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: TestUserWithoutNamespaces") {
		t.Errorf("%v\n%s", err, out)
	}
}

func withoutNamespaces(t *testing.T) {
	if err := os.WriteFile("/proc/sys/user/max_user_namespaces", []byte("0"), 0); err != nil {
		t.Fatal(err)
	}
	d := newDriver(t)
	_, err := d.Probe(t.Context())
	var unavailable *sandbox.Unavailable
	if !errors.As(err, &unavailable) || !strings.Contains(unavailable.Remedy, "user.max_user_namespaces") {
		t.Errorf("got %v, want unavailable naming the setting", err)
	}
	if s, err := d.Start(t.Context(), sandbox.Spec{}); err == nil {
		s.Close()
		t.Error("it started all the same")
	}
}

// TestUserVirtualEnvironment runs programs under an interpreter that lies below a folder that the sandbox mounts anew.
func TestUserVirtualEnvironment(t *testing.T) {
	folder, err := os.MkdirTemp("", "treeline-venv")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	if err := os.Chmod(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	home := filepath.Join(folder, "venv")
	if out, err := exec.Command("/usr/bin/python3", "-m", "venv", "--without-pip", home).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	packages, err := filepath.Glob(home + "/lib/python3*/site-packages")
	if err != nil || len(packages) != 1 {
		t.Fatal(packages, err)
	}
	if err := os.WriteFile(filepath.Join(packages[0], "onlyhere.py"), []byte("x = 7\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	d, err := New(Options{Python: filepath.Join(home, "bin/python3")})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	code := "import onlyhere, subprocess, sys\nprint(onlyhere.x, sys.prefix)\nsys.stdout.flush()\n" +
		"subprocess.run([sys.executable, '-c', 'import onlyhere; print(onlyhere.x)'])"
	out, _ := runOnce(t, d, code, nil)
	if want := "7 " + home + "\n7\n"; out.Stdout.Head != want {
		t.Errorf("got %q, want %q; %s", out.Stdout.Head, want, out.Stderr.Head)
	}
}
