package local

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"strings"

	"treeline/internal/sandbox"

	"golang.org/x/sys/unix"
)

// Probe makes a sandbox as a call would, runs a program in it, and says what held. Sessions are quicker after it.
func (d *Driver) Probe(ctx context.Context) (sandbox.Report, error) {
	s, err := d.start(ctx, sandbox.Spec{Label: "probe"})
	if err != nil {
		return sandbox.Report{}, err
	}
	defer s.Close()
	out, err := s.Run(ctx, sandbox.Program{Code: []byte("print(6*7)")})
	if err != nil {
		return sandbox.Report{}, unavailable(err)
	}
	if out.Reason != sandbox.OK || out.Stdout.Head != "42\n" {
		return sandbox.Report{}, unavailable(fmt.Errorf("a first program ended as %s and said %q", out.Reason, out.Stderr.Head))
	}
	r := sandbox.Report{Driver: Name, Enforced: enforced(), Missing: s.gaps(), Python: d.python()}
	if s.group != nil {
		r.Enforced = append(r.Enforced, "a cgroup for each run")
	}
	if s.landlock > 0 {
		r.Enforced = append(r.Enforced, fmt.Sprintf("landlock, ABI %d", s.landlock))
	}
	d.readyFonts(ctx)
	return r, s.Close()
}

func (d *Driver) python() sandbox.Python {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.runtime == nil {
		return sandbox.Python{}
	}
	return sandbox.Python{Path: d.runtime.Python, Version: d.runtime.Version, Libraries: maps.Clone(d.runtime.Libraries)}
}

func enforced() []string {
	return []string{
		"user, mount, pid, network, ipc, uts and cgroup namespaces of its own, made by an unprivileged user",
		"a read-only root of the interpreter's files and installed libraries, no host /etc, home or sockets",
		"/proc of its own processes alone",
		"no capabilities, no new privileges",
		"a system call filter that allows what Python needs",
		"limits of time, memory, processes, disk, inodes, file size and descriptors",
	}
}

func (s *Session) gaps() []sandbox.Gap {
	var gaps []sandbox.Gap
	if s.group == nil {
		gaps = append(gaps, sandbox.Gap{
			What:   "a kernel limit of the whole group's memory",
			Reason: fmt.Sprintf("memory is added up every %v instead, which leaves out what the kernel holds for pipes, locks and watches", watchInterval),
			Remedy: "name a cgroup folder that this worker may make groups in, or leave the machine some memory to spare",
		})
	}
	if s.landlock == 0 {
		gaps = append(gaps, sandbox.Gap{
			What:   "landlock, a second lock behind the read-only root",
			Reason: "the kernel has none of ABI 2 or later",
			Remedy: "boot Linux 5.19 or later with landlock in its lsm= list",
		})
	}
	if major, minor := kernel(); major == 5 && minor < 14 {
		gaps = append(gaps, sandbox.Gap{
			What:   "a limit of processes for each run alone",
			Reason: "before Linux 5.14 the runs of one user share it",
			Remedy: "use Linux 5.14 or later",
		})
	}
	return gaps
}

// unavailable turns the reason why a sandbox could not be made into one that tells what to change.
func unavailable(err error) error {
	if err == nil {
		err = errors.New("its first process gave no account of itself")
	}
	return &sandbox.Unavailable{Driver: Name, Reason: err.Error(), Remedy: machine{}.remedy(err)}
}

func unavailableCgroup(err error) error {
	return &sandbox.Unavailable{
		Driver: Name, Reason: err.Error(),
		Remedy: "name folders of cgroup version 2 (one, without processes of its own) or 1 (one each of memory and pids) that " +
			"this worker may write in, or none",
	}
}

// launcherStep is what was being done where not even the launcher could be started.
const launcherStep = "start the launcher"

// machine is where the settings are read from: files below root, the real ones if it is empty.
type machine struct {
	root  string
	major int // of the kernel, 0 to ask it
	minor int
}

// remedy names the setting that explains err, or "" if none is known to.
func (m machine) remedy(err error) string {
	if m.major == 0 {
		m.major, m.minor = kernel()
	}
	var step *stepError
	switch {
	case errors.As(err, &step) && step.Step == launcherStep && errors.Is(err, unix.EACCES):
		return "make this binary executable for everybody (chmod 755)"
	case errors.As(err, &step) && step.Step == launcherStep:
		return "a worker that is root becomes another user for its sandboxes: give it CAP_SETUID and CAP_SETGID and map that " +
			"user into its user namespace, or run it as an ordinary user"
	case m.major < 5 || m.major == 5 && m.minor < 12:
		return fmt.Sprintf("the kernel is %d.%d: Linux 5.12 or later is needed for read-only mounts of the interpreter's files", m.major, m.minor)
	case !errors.Is(err, unix.EPERM) && !errors.Is(err, unix.EACCES) && !errors.Is(err, unix.ENOSPC) &&
		!errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOSYS) && !errors.Is(err, unix.EUSERS):
		return ""
	case m.setting("user/max_user_namespaces") == "0":
		return "user namespaces are off: sysctl -w user.max_user_namespaces=15000"
	case m.setting("kernel/unprivileged_userns_clone") == "0":
		return "unprivileged user namespaces are off: sysctl -w kernel.unprivileged_userns_clone=1"
	case m.setting("kernel/apparmor_restrict_unprivileged_userns") == "1":
		return "AppArmor refuses unprivileged user namespaces: sysctl -w kernel.apparmor_restrict_unprivileged_userns=0, " +
			"or give this binary a profile that says userns,"
	case m.filtered():
		return "this process is itself under a system call filter, as Docker's default one, which refuses user namespaces: " +
			"run the container with --security-opt seccomp=unconfined --security-opt systempaths=unconfined, or, in " +
			"Kubernetes, seccompProfile: Unconfined and procMount: Unmasked, for this worker alone"
	case errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EUSERS):
		return "too many user namespaces: raise user.max_user_namespaces, or nest containers less deeply"
	}
	return "something that guards this process (an LSM, a container's profile) refuses user namespaces or mounts in them"
}

func (m machine) setting(name string) string {
	body, err := os.ReadFile(m.root + "/proc/sys/" + name)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(body))
}

func (m machine) filtered() bool {
	body, err := os.ReadFile(m.root + "/proc/self/status")
	return err == nil && strings.Contains(string(body), "\nSeccomp:\t2")
}

// kernel gives the running kernel's version, 0, 0 where it cannot be told.
func kernel() (major, minor int) {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return 0, 0
	}
	release := unix.ByteSliceToString(u.Release[:])
	if _, err := fmt.Sscanf(release, "%d.%d", &major, &minor); err != nil {
		return 0, 0
	}
	return major, minor
}
