package local

import (
	"encoding/binary"
	"fmt"
	"strings"

	seccomp "github.com/elastic/go-seccomp-bpf"
	"github.com/elastic/go-seccomp-bpf/arch"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// allowed are the system calls that the program may make: files, memory, threads, processes, pipes and sockets of its
// own. Everything else, known or yet to come, fails with EPERM and the process lives. What is left out on purpose:
// namespaces, mounts, other processes' memory, keys, BPF, io_uring, userfaultfd, perf, handles, personality, modules, what
// has the host write out all of its disks, and memory that no process maps and the watchdog could not see: memfd, all of
// System V's, message queues, and what epoll and inotify hold. Of an epoll's watches there is one for each pair of epoll
// and file: one run could use up what its user may have of them, which all runs share, and would then be long in dying. Only
// the making of an epoll is left out: the thread that starts the program may still have to wait at the launcher's own, which
// the program never gets.
var allowed = strings.Fields(`
	read write open close stat fstat lstat poll lseek mmap mprotect munmap brk rt_sigaction rt_sigprocmask rt_sigreturn
	pread64 pwrite64 readv writev access pipe select sched_yield mremap msync mincore madvise dup dup2 pause nanosleep
	getitimer alarm setitimer getpid sendfile connect accept sendto recvfrom sendmsg recvmsg shutdown bind listen
	getsockname getpeername setsockopt getsockopt fork vfork execve exit wait4 kill uname
	fcntl flock fsync fdatasync truncate ftruncate getdents getcwd chdir fchdir rename mkdir rmdir creat link unlink symlink
	readlink chmod fchmod chown fchown lchown umask gettimeofday getrlimit getrusage sysinfo times getuid getgid setuid
	setgid geteuid getegid setpgid getppid getpgrp setsid setreuid setregid getgroups setresuid getresuid setresgid
	getresgid getpgid getsid capget rt_sigpending rt_sigtimedwait rt_sigqueueinfo rt_sigsuspend sigaltstack utime mknod
	statfs fstatfs getpriority sched_getparam sched_getscheduler
	sched_get_priority_max sched_get_priority_min sched_rr_get_interval mlock munlock mlockall munlockall prctl arch_prctl
	setrlimit gettid readahead getxattr lgetxattr fgetxattr listxattr llistxattr flistxattr tkill time futex
	sched_getaffinity set_thread_area get_thread_area getdents64 set_tid_address
	restart_syscall fadvise64 timer_create timer_settime timer_gettime timer_getoverrun timer_delete clock_gettime
	clock_getres clock_nanosleep exit_group epoll_wait epoll_ctl tgkill utimes get_mempolicy mbind set_mempolicy waitid
	openat mkdirat mknodat fchownat futimesat newfstatat unlinkat renameat
	linkat symlinkat readlinkat fchmodat faccessat pselect6 ppoll set_robust_list get_robust_list splice tee
	sync_file_range utimensat epoll_pwait signalfd timerfd_create eventfd fallocate timerfd_settime timerfd_gettime accept4
	signalfd4 eventfd2 dup3 pipe2 preadv pwritev rt_tgsigqueueinfo recvmmsg
	sendmmsg getcpu getrandom execveat membarrier mlock2 copy_file_range preadv2 pwritev2 pkey_mprotect pkey_alloc
	pkey_free statx rseq pidfd_send_signal pidfd_open close_range openat2 faccessat2 futex_waitv fchmodat2
	cachestat map_shadow_stack futex_wake futex_wait futex_requeue mseal`)

const newNamespaces = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC |
	unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET

// Requests that the system's own package does not name.
const (
	fionclex = 0x5450
	fioclex  = 0x5451
	fionbio  = 0x5421
)

// requests are the device requests that Python's libraries make; those that type into a terminal are not among them.
var requests = []uint64{
	unix.TCGETS, unix.TIOCGWINSZ, unix.TIOCGPGRP, unix.TIOCINQ, unix.TIOCOUTQ, fionbio, fioclex, fionclex,
	unix.SIOCGIFNAME, unix.SIOCGIFINDEX, unix.SIOCGIFCONF, unix.SIOCGIFFLAGS, unix.SIOCGIFADDR,
}

// policy is the filter in the library's words, for this machine's architecture.
func policy() (seccomp.Policy, error) {
	info, err := arch.GetInfo("")
	if err != nil {
		return seccomp.Policy{}, fmt.Errorf("look up the architecture: %w", err)
	}
	names := make([]string, 0, len(allowed))
	for _, name := range allowed {
		if _, known := info.SyscallNames[name]; known {
			names = append(names, name)
		}
	}
	return seccomp.Policy{
		DefaultAction: seccomp.ActionErrno,
		Syscalls: []seccomp.SyscallGroup{
			{Names: absent(info), Action: seccomp.ActionErrno | seccomp.Action(unix.ENOSYS)},
			{Names: names, NamesWithCondtions: conditions(), Action: seccomp.ActionAllow},
		},
	}, nil
}

// absent are the system calls that fail as on a kernel that lacks them, for which libraries have another way: clone3, whose
// flags lie in memory, where a filter cannot look, and epoll, in place of which Python's selectors take poll.
func absent(info *arch.Info) []string {
	names := []string{"clone3", "epoll_create1"}
	if _, known := info.SyscallNames["epoll_create"]; known {
		names = append(names, "epoll_create")
	}
	return names
}

func conditions() []seccomp.NameWithConditions {
	rules := []seccomp.NameWithConditions{{
		Name:       "clone",
		Conditions: seccomp.ArgumentConditions{{Argument: 0, Operation: seccomp.BitsNotSet, Value: newNamespaces}},
	}}
	// Of oneself only: init runs as the same user, and must neither run short of descriptors nor fall behind.
	for _, call := range []string{"prlimit64", "sched_setscheduler", "sched_setparam", "sched_setaffinity"} {
		rules = append(rules, equal(call, 0))
	}
	rules = append(rules, seccomp.NameWithConditions{
		Name: "setpriority",
		Conditions: seccomp.ArgumentConditions{
			{Argument: 0, Operation: seccomp.Equal, Value: unix.PRIO_PROCESS}, {Argument: 1, Operation: seccomp.Equal, Value: 0},
		},
	})
	// No other family: some of them, such as the virtual machine's own, know no namespaces.
	for _, call := range []string{"socket", "socketpair"} {
		for _, family := range []uint64{unix.AF_UNIX, unix.AF_INET, unix.AF_INET6} {
			rules = append(rules, equal(call, family))
		}
	}
	rules = append(rules, seccomp.NameWithConditions{
		Name: "socket",
		Conditions: seccomp.ArgumentConditions{
			{Argument: 0, Operation: seccomp.Equal, Value: unix.AF_NETLINK},
			{Argument: 2, Operation: seccomp.Equal, Value: unix.NETLINK_ROUTE},
		},
	})
	for _, request := range requests {
		rules = append(rules, seccomp.NameWithConditions{
			Name: "ioctl", Conditions: seccomp.ArgumentConditions{{Argument: 1, Operation: seccomp.Equal, Value: request}},
		})
	}
	return rules
}

func equal(call string, first uint64) seccomp.NameWithConditions {
	return seccomp.NameWithConditions{
		Name: call, Conditions: seccomp.ArgumentConditions{{Argument: 0, Operation: seccomp.Equal, Value: first}},
	}
}

// assembleFilter gives the filter as the kernel takes it, 8 bytes an instruction, little-endian.
func assembleFilter() ([]byte, error) {
	p, err := policy()
	if err != nil {
		return nil, err
	}
	instructions, err := p.Assemble()
	if err != nil {
		return nil, fmt.Errorf("assemble the filter: %w", err)
	}
	raw, err := bpf.Assemble(instructions)
	if err != nil {
		return nil, fmt.Errorf("assemble the filter: %w", err)
	}
	out := make([]byte, 0, 8*len(raw))
	for _, r := range raw {
		out = binary.LittleEndian.AppendUint16(out, r.Op)
		out = append(out, r.Jt, r.Jf)
		out = binary.LittleEndian.AppendUint32(out, r.K)
	}
	return out, nil
}
