package local

import (
	"bytes"
	"cmp"
	"errors"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// watchInterval bounds how long the group may be past its memory: at the few GB a second that a program can touch, some
// tens of MiB.
const watchInterval = 10 * time.Millisecond

// watchdog adds up the memory of every process of the pid namespace but init, of the files they wrote, and of what the
// kernel holds for them.
type watchdog struct {
	limit int64
	proc  int  // the namespace's /proc
	tree  int  // the writable tmpfs
	swap  bool // the machine has some
	peak  int64

	ticks      int
	mapped     int64     // addresses of all processes, in bytes
	counted    int64     // memory shared without a file that rough or exact has counted
	looked     []process // that rough has looked at
	socketSize int64     // the most that one socket holds
	deep       chan deepLook
	looking    bool // for what deep is to bring

	entries []byte // room to list processes in
	status  []byte // room to read about one
	pids    []string
}

// process is what is known of one.
type process struct {
	pid                  string
	used, tables, mapped int64
}

// same reports whether two processes have one memory between them, as those have that are about to execute a program.
func (p process) same(other process) bool {
	const memory = 1              // KCMP_VM
	if p.mapped != other.mapped { // it is asked of few
		return false
	}
	differ, _, errno := unix.RawSyscall6(unix.SYS_KCMP, uintptr(number([]byte(p.pid))), uintptr(number([]byte(other.pid))), memory, 0, 0, 0)
	return errno == 0 && differ == 0
}

func newWatchdog(limit int64, trees rootTrees) *watchdog {
	var machine unix.Sysinfo_t
	_ = unix.Sysinfo(&machine)
	return &watchdog{
		limit: limit, proc: trees.proc, tree: trees.writable, swap: machine.Totalswap > 0, socketSize: socketSize(),
		deep: make(chan deepLook, 1), entries: make([]byte, 16<<10), status: make([]byte, statusSize),
	}
}

// over measures and reports whether the group is past its limit.
func (w *watchdog) over() bool {
	used := w.rough()
	if used > w.limit {
		used = w.exact()
	}
	w.peak = max(w.peak, used)
	if used > w.limit {
		return true
	}
	select {
	case found := <-w.deep:
		w.looking = false
		if found.crowded || used+max(0, found.shared-w.counted) > w.limit {
			return true
		}
	default:
	}
	if w.ticks++; w.ticks%deepEvery == 0 && !w.looking {
		w.looking = true
		go w.lookDeep(w.processIDs(), used+w.mapped > w.limit)
	}
	return false
}

func (w *watchdog) processIDs() []string {
	ids := make([]string, len(w.looked))
	for i, p := range w.looked {
		ids[i] = p.pid
	}
	return ids
}

// rough is quick and, but for memory that no process has in its account, never too low: memory that several processes
// share counts for each of them.
func (w *watchdog) rough() int64 {
	page := int64(unix.Getpagesize())
	used := w.files() + w.sockets()
	w.mapped, w.counted, w.looked = 0, 0, w.looked[:0]
	for _, pid := range w.processes() {
		body, err := readAt(w.proc, pid+"/statm", w.status)
		if err != nil {
			continue // it has ended
		}
		size, rest, _ := bytes.Cut(body, []byte(" "))
		resident, rest, _ := bytes.Cut(rest, []byte(" "))
		shared, _, _ := bytes.Cut(rest, []byte(" "))
		p := process{pid: pid, mapped: page * number(size)}
		backed := w.fileBacked(pid, number(shared))
		p.used = page * (number(resident) - backed)
		if backed < number(shared) {
			w.counted += page * (number(shared) - backed)
		}
		if w.swap || p.mapped > untabled/int64(len(w.pids)) {
			if body, err := readAt(w.proc, pid+"/status", w.status); err == nil {
				p.tables = kilobytes(body, "VmPTE:") << 10
				p.used += kilobytes(body, "VmSwap:")<<10 + p.tables
			}
		}
		used += p.used
		w.mapped += p.mapped
		w.looked = append(w.looked, p)
	}
	return used
}

// unlooked bounds, in pages and for the whole group, the shared memory that is taken for files without a closer look.
const unlooked = 32768

// untabled bounds, for the whole group, the addresses whose page tables are not looked at; those take a 512th of it at most.
const untabled = 16 << 30

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

// exact shares what is shared, of the processes that rough has just looked at. A file that is mapped is counted once, as a
// file or as memory. It begins with the largest and stops when the limit is passed.
func (w *watchdog) exact() int64 {
	slices.SortFunc(w.looked, func(a, b process) int { return cmp.Compare(b.used, a.used) })
	files, private, shared := w.files(), w.sockets(), int64(0)
	for i, p := range w.looked {
		if slices.ContainsFunc(w.looked[:i], p.same) {
			continue
		}
		body, err := readAt(w.proc, p.pid+"/smaps_rollup", w.status)
		switch {
		case errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM): // it executes a file that it may not read
			private += p.used
		case err == nil:
			private += p.tables + (kilobytes(body, "Pss_Anon:")+kilobytes(body, "SwapPss:"))<<10
			shared += kilobytes(body, "Pss_Shmem:") << 10
		}
		if private+max(shared, files) > w.limit {
			break
		}
	}
	w.counted = max(0, shared-files)
	return private + max(shared, files)
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
	w.pids = names(fd, w.entries, w.pids[:0])
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
