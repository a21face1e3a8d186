package local

import (
	"fmt"
	"strings"
	"testing"

	"github.com/elastic/go-seccomp-bpf/arch"

	"treeline/internal/sandbox"
	"treeline/internal/sandbox/sandboxtest"
)

// forbidden are system calls that must fail with EPERM, with arguments that would otherwise get somewhere. Socket
// families and clone's flags stand as arguments.
var forbidden = []string{
	"unshare 0x10000000", "unshare 0x20000", "unshare 0x40000000", "unshare 0x08000000", "unshare 0x20000000", "unshare 0x02000000",
	"clone 0x10000011", "clone 0x20011", "clone 0x40000011", "clone 0x08000011", "clone 0x04000011", "clone 0x20000011", "clone 0x02000011",
	"setns 0 0", "mount 0 0 0 0 0", "umount2 0 0", "pivot_root 0 0", "chroot 0", "open_tree -100 0 1", "move_mount 0 0 0 0 0", "fsopen 0 0",
	"fsconfig 0 0 0 0 0", "fsmount 0 0 0", "fspick 0 0 0", "mount_setattr 0 0 0 0 0",
	"ptrace 0 0 0 0", "process_vm_readv 1 0 0 0 0 0", "process_vm_writev 1 0 0 0 0 0", "pidfd_getfd 0 0 0", "kcmp 1 1 0 0 0",
	"keyctl 0 0 0", "add_key 0 0 0 0 0", "request_key 0 0 0 0", "bpf 0 0 0", "perf_event_open 0 0 0 0 0", "userfaultfd 0",
	"io_uring_setup 1 0", "io_uring_enter 0 0 0 0 0 0", "io_uring_register 0 0 0 0", "io_setup 1 0",
	"name_to_handle_at -100 0 0 0 0", "open_by_handle_at 0 0 0", "fanotify_init 0 0", "quotactl 0 0 0 0",
	"kexec_load 0 0 0 0", "kexec_file_load 0 0 0 0 0", "init_module 0 0 0", "finit_module 0 0 0", "delete_module 0 0", "reboot 0 0 0 0",
	"swapon 0 0", "swapoff 0", "acct 0", "settimeofday 0 0", "clock_settime 0 0", "adjtimex 0", "sethostname 0 0", "setdomainname 0 0",
	"iopl 3", "ioperm 0 1 1", "modify_ldt 0 0 0", "syslog 3 0 0", "personality 0xffffffff", "vhangup", "seccomp 0 0 0", "lookup_dcookie 0 0 0",
	"memfd_create 0 0", "memfd_secret 0", "shmget 0 4096 0x3ff", "semget 0 1 0x3ff", "inotify_init1 0", "msgget 0 0x3ff", "mq_open 0 0 0 0", "move_pages 0 0 0 0 0 0", "vmsplice 0 0 0 0",
	"socket 40 1 0", "socket 38 5 0", "socket 17 3 0", "socket 16 3 12", "socket 16 3 16", "socket 29 3 1", "socket 31 1 0",
	"ioctl 0 0x5412 0", "ioctl 0 0x541c 0", "setxattr 0 0 0 0 0", "landlock_create_ruleset 0 0 1",
	"prlimit64 1 7 0 0", "setpriority 0 1 19", "setpriority 1 0 19", "setpriority 2 0 19", "sched_setscheduler 1 5 0", "sched_setparam 1 0",
	"sched_setaffinity 1 8 0", "ioprio_set 1 1 0",
}

func TestUserForbiddenSystemCalls(t *testing.T) {
	info, err := arch.GetInfo("")
	if err != nil {
		t.Fatal(err)
	}
	var code, want strings.Builder
	code.WriteString("import ctypes, os\nl = ctypes.CDLL(None, use_errno=True)\ndef c(what, *a):\n" +
		"    r = l.syscall(*map(ctypes.c_long, a))\n    if r == 0 and what[:5] == 'clone': os._exit(0)\n" +
		"    print(what, 'EPERM' if r == -1 and ctypes.get_errno() == 1 else (r, ctypes.get_errno()))\n")
	for _, call := range forbidden {
		name, arguments, _ := strings.Cut(call, " ")
		number, known := info.SyscallNames[name]
		if !known {
			continue // this architecture has none of it
		}
		fmt.Fprintf(&code, "c(%q, %d", call, number)
		for _, a := range strings.Fields(arguments) {
			fmt.Fprintf(&code, ", %s", a)
		}
		code.WriteString(")\n")
		fmt.Fprintf(&want, "%s EPERM\n", call)
	}
	s := sandboxtest.Start(t, newDriver(t), sandbox.Limits{})
	out, err := s.Run(t.Context(), sandbox.Program{Code: []byte(code.String())})
	if err != nil || out.Reason != sandbox.OK {
		t.Fatalf("%+v, %v", out, err)
	}
	got := strings.Split(out.Stdout.Head, "\n")
	for i, line := range strings.Split(want.String(), "\n") {
		if i >= len(got) || got[i] != line {
			t.Errorf("got %q, want %q", got[min(i, len(got)-1)], line)
		}
	}
}

// TestUserForeignABI sees that calls in the processor's other numberings do not slip by the filter.
func TestUserForeignABI(t *testing.T) {
	info, err := arch.GetInfo("")
	if err != nil {
		t.Fatal(err)
	}
	code := "import ctypes\nl = ctypes.CDLL(None, use_errno=True)\nr = [l.syscall(ctypes.c_long(0x40000000 + n)) for n in (39, 165, 272)]\nprint(r)"
	if info.ID != arch.X86_64.ID {
		code = "print([-1, -1, -1])"
	}
	s := sandboxtest.Start(t, newDriver(t), sandbox.Limits{})
	out, err := s.Run(t.Context(), sandbox.Program{Code: []byte(code)})
	if err != nil || out.Stdout.Head != "[-1, -1, -1]\n" {
		t.Errorf("got %+v, %v", out, err)
	}
}

func TestAllowedAreKnown(t *testing.T) {
	info, err := arch.GetInfo("x86_64")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, name := range allowed {
		if _, known := info.SyscallNames[name]; !known || seen[name] {
			t.Errorf("%s is unknown or listed twice", name)
		}
		seen[name] = true
	}
}
