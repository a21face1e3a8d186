package local

import (
	"bytes"
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
	proc  int // the namespace's /proc
	tree  int // the writable tmpfs
	peak  int64
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
		body, err := readAt(w.proc, pid+"/statm")
		if err != nil {
			continue // it has ended
		}
		fields := bytes.Fields(body)
		if len(fields) < 3 {
			continue
		}
		used += page * (number(fields[1]) - w.fileBacked(pid, fields))
	}
	return used, processes
}

// fileBacked gives the resident pages that are the interpreter's own files: the kernel takes those back when it must.
// statm's third field counts shared memory along with them, which is told apart only for a process that has much.
func (w *watchdog) fileBacked(pid string, fields [][]byte) int64 {
	shared := number(fields[2])
	if shared < 4096 {
		return shared
	}
	body, err := readAt(w.proc, pid+"/status")
	if err != nil {
		return 0
	}
	return kilobytes(body, "RssFile:") << 10 / int64(unix.Getpagesize())
}

// exact shares what is shared. A file that is mapped is counted once, as a file or as memory.
func (w *watchdog) exact(processes []string) int64 {
	var private, shared int64
	for _, pid := range processes {
		body, err := readAt(w.proc, pid+"/smaps_rollup")
		if err != nil {
			continue
		}
		private += kilobytes(body, "Pss_Anon:") << 10
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
	var names, pids []string
	buf := make([]byte, 16<<10)
	for {
		n, err := unix.ReadDirent(fd, buf)
		if err != nil || n <= 0 {
			break
		}
		_, _, names = unix.ParseDirent(buf[:n], -1, names[:0])
		for _, name := range names {
			if name[0] >= '1' && name[0] <= '9' && name != "1" {
				pids = append(pids, name)
			}
		}
	}
	return pids
}

func kilobytes(body []byte, field string) int64 {
	_, rest, found := bytes.Cut(body, []byte("\n"+field))
	if !found {
		return 0
	}
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	return number(bytes.TrimSuffix(bytes.TrimSpace(line), []byte(" kB")))
}

func number(b []byte) int64 {
	n, err := strconv.ParseInt(string(bytes.TrimSpace(b)), 10, 64)
	if err != nil {
		return 0
	}
	return n
}
