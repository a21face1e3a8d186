package local

import (
	"bytes"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// watchInterval bounds how long the group may be past its memory: at the few GB a second that a program can touch, some
// tens of MiB.
const watchInterval = 10 * time.Millisecond

// watchdog adds up the memory of every process of the pid namespace but init, and of the files they wrote.
type watchdog struct {
	limit int64
	proc  int  // the namespace's /proc
	tree  int  // the writable tmpfs
	swap  bool // the machine has some
	peak  int64

	entries []byte // room to list processes in
	status  []byte // room to read about one
	pids    []string
}

func newWatchdog(limit int64, trees rootTrees) *watchdog {
	var machine unix.Sysinfo_t
	_ = unix.Sysinfo(&machine)
	return &watchdog{
		swap: machine.Totalswap > 0, limit: limit, proc: trees.proc, tree: trees.writable, entries: make([]byte, 16<<10), status: make([]byte, statusSize),
	}
}

// over measures and reports whether the group is past its limit.
func (w *watchdog) over() bool {
	used, processes := w.rough()
	if used > w.limit {
		used = w.exact(processes)
	}
	w.peak = max(w.peak, used)
	return used > w.limit
}

// rough is quick and never too low: memory that several processes share counts for each of them.
func (w *watchdog) rough() (int64, []string) {
	page := int64(unix.Getpagesize())
	used := w.files()
	processes := w.processes()
	for _, pid := range processes {
		body, err := readAt(w.proc, pid+"/statm", w.status)
		if err != nil {
			continue // it has ended
		}
		_, rest, _ := bytes.Cut(body, []byte(" "))
		resident, rest, _ := bytes.Cut(rest, []byte(" "))
		shared, _, _ := bytes.Cut(rest, []byte(" "))
		used += page * (number(resident) - w.fileBacked(pid, number(shared)))
		if w.swap {
			if body, err := readAt(w.proc, pid+"/status", w.status); err == nil {
				used += kilobytes(body, "VmSwap:") << 10
			}
		}
	}
	return used, processes
}

// unlooked bounds, in pages and for the whole group, the shared memory that is taken for files without a closer look.
const unlooked = 32768

// fileBacked gives the resident pages that are the interpreter's own files: the kernel takes those back when it must.
// What statm calls shared counts shared memory along with them, which is told apart only for a process that has much.
func (w *watchdog) fileBacked(pid string, shared int64) int64 {
	if shared < unlooked/int64(len(w.pids)+1) {
		return shared
	}
	body, err := readAt(w.proc, pid+"/status", w.status)
	if err != nil {
		return 0
	}
	return kilobytes(body, "RssFile:") << 10 / int64(unix.Getpagesize())
}

// exact shares what is shared. A file that is mapped is counted once, as a file or as memory.
func (w *watchdog) exact(processes []string) int64 {
	var private, shared int64
	for _, pid := range processes {
		body, err := readAt(w.proc, pid+"/smaps_rollup", w.status)
		if err != nil {
			continue
		}
		private += (kilobytes(body, "Pss_Anon:") + kilobytes(body, "SwapPss:")) << 10
		shared += kilobytes(body, "Pss_Shmem:") << 10
	}
	return private + max(shared, w.files())
}

func (w *watchdog) files() int64 {
	var st unix.Statfs_t
	if err := unix.Fstatfs(w.tree, &st); err != nil {
		return 0
	}
	return int64(st.Blocks-st.Bfree) * st.Bsize
}

// processes lists the namespace's processes but the first.
func (w *watchdog) processes() []string {
	fd, err := unix.Openat(w.proc, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer unix.Close(fd)
	w.pids = w.pids[:0]
	for {
		n, err := unix.ReadDirent(fd, w.entries)
		if err != nil || n <= 0 {
			break
		}
		_, _, w.pids = unix.ParseDirent(w.entries[:n], -1, w.pids)
	}
	w.pids = slices.DeleteFunc(w.pids, func(name string) bool { return name[0] < '1' || name[0] > '9' || name == "1" })
	return w.pids
}

// statusField gives the value on the line that begins with field.
func statusField(body []byte, field string) []byte {
	_, rest, _ := bytes.Cut(body, []byte("\n"+field))
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	return bytes.TrimSpace(line)
}

func kilobytes(body []byte, field string) int64 {
	return number(bytes.TrimSuffix(statusField(body, field), []byte(" kB")))
}

func number(b []byte) int64 {
	n, err := strconv.ParseInt(string(bytes.TrimSpace(b)), 10, 64)
	if err != nil {
		return 0
	}
	return n
}
