package attacktest

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
)

// host is what lies about on the machine for attacks to find, and notices when something does.
type host struct {
	facts   map[string]any
	secret  string
	reached atomic.Int64
}

// word is in every secret.
const word = "the-launch-code-is-4711"

// newHost lays secrets out where a worker would have its own: in files that everybody may read, in its environment, and
// behind sockets that everybody may connect to.
func newHost(t *testing.T) *host {
	t.Helper()
	folder, err := os.MkdirTemp("", "treeline-attacked")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	h := &host{secret: filepath.Join(folder, "secret")}
	for _, err := range []error{os.Chmod(folder, 0o777), os.WriteFile(h.secret, []byte(word), 0o666), os.Chmod(h.secret, 0o666)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("TREELINE_ATTACKED", word)
	h.facts = map[string]any{"secret": h.secret, "folder": here, "word": word, "worker": os.Getpid(), "forbidden": forbidden}
	h.listen(t, folder)
	return h
}

func (h *host) listen(t *testing.T, folder string) {
	t.Helper()
	path, abstract := filepath.Join(folder, "socket"), "treeline-attacked-"+filepath.Base(folder)
	h.facts["socket"], h.facts["abstract"] = path, abstract
	tcp := h.accept(t, "tcp", "127.0.0.1:0")
	h.facts["tcp"] = tcp.(*net.TCPAddr).Port
	h.accept(t, "unix", path)
	h.accept(t, "unix", "@"+abstract)
	if err := os.Chmod(path, 0o777); err != nil {
		t.Fatal(err)
	}
	udp := h.receive(t, "udp", "127.0.0.1:0")
	h.facts["udp"] = udp.(*net.UDPAddr).Port
	h.receive(t, "unixgram", "@"+abstract+"-datagram")
}

// accept counts whoever connects.
func (h *host) accept(t *testing.T, network, address string) net.Addr {
	t.Helper()
	ln, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			h.reached.Add(1)
			conn.Close()
		}
	}()
	return ln.Addr()
}

// receive counts whatever is sent.
func (h *host) receive(t *testing.T, network, address string) net.Addr {
	t.Helper()
	conn, err := net.ListenPacket(network, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	go func() {
		for b := make([]byte, 16); ; {
			if _, _, err := conn.ReadFrom(b); err != nil {
				if !errors.Is(err, net.ErrClosed) {
					continue
				}
				return
			}
			h.reached.Add(1)
		}
	}()
	return conn.LocalAddr()
}

// expectUntouched sees that nothing that was laid out was found.
func (h *host) expectUntouched(t *testing.T) {
	t.Helper()
	if n := h.reached.Load(); n != 0 {
		t.Errorf("sockets of the host were reached %d times", n)
	}
	if b, err := os.ReadFile(h.secret); err != nil || string(b) != word {
		t.Errorf("the secret is now %q, %v", b, err)
	}
}

// forbidden are system calls that no program of a model's has a use for and that have let others out before.
const forbidden = `mount umount2 pivot_root chroot unshare setns ptrace process_vm_readv process_vm_writev kcmp keyctl add_key
	request_key bpf io_uring_setup io_uring_enter io_uring_register userfaultfd perf_event_open memfd_create memfd_secret
	init_module finit_module delete_module create_module query_module get_kernel_syms kexec_load kexec_file_load reboot swapon
	swapoff syslog acct settimeofday clock_settime clock_adjtime adjtimex sethostname setdomainname iopl ioperm modify_ldt
	quotactl quotactl_fd nfsservctl name_to_handle_at open_by_handle_at fanotify_init fanotify_mark personality lookup_dcookie
	move_mount open_tree open_tree_attr fsopen fsconfig fsmount fspick mount_setattr listmount statmount pidfd_getfd
	process_madvise process_mrelease landlock_create_ruleset landlock_add_rule landlock_restrict_self seccomp shmget shmat shmctl
	shmdt msgget msgsnd msgrcv msgctl mq_open mq_unlink vhangup uselib ustat sysfs _sysctl migrate_pages move_pages
	set_mempolicy_home_node remap_file_pages vmsplice setgroups setfsuid setfsgid capset io_setup io_submit io_destroy
	setxattr lsetxattr fsetxattr removexattr lremovexattr fremovexattr lsm_set_self_attr lsm_get_self_attr lsm_list_modules
	vserver security tuxcall sync syncfs`
