package local

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// deepEvery is how many looks apart, at the least, the watchdog asks for what is in no process's account.
const deepEvery = 10

// maxObjects is how many mappings, and how many locks on files, a group may have. The kernel keeps some 200 bytes for each,
// outside of any account, and to tell them takes it so long that more of them would keep the watchdog from looking.
const maxObjects = 128 << 10

// deepLook is what was found that is in no process's account.
type deepLook struct {
	shared  int64 // bytes of memory that processes share without a file
	crowded bool  // there are more than maxObjects
}

// lookDeep looks closely at processes, which may take it long, and tells. Their mappings are looked at only if asked for.
func (w *watchdog) lookDeep(pids []string, mappings bool) {
	var found deepLook
	if mappings {
		found = w.unseen(pids)
	}
	found.crowded = found.crowded || w.locks(pids) > maxObjects
	w.deep <- found
}

// unseen gives the size of all memory that processes share without a file. It stays when they let go of its pages, until
// the last mapping is gone, so that no process may have it in its account. Nothing tells how much of it was ever touched.
func (w *watchdog) unseen(pids []string) deepLook {
	sizes := map[string]int64{} // by inode: it is the same in every process that maps it
	mappings := 0
	for _, pid := range pids {
		fd, err := unix.Openat(w.proc, pid+"/maps", unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			continue // it has ended
		}
		f := os.NewFile(uintptr(fd), "maps")
		own := map[string]int64{}
		mappings += sharedWithoutFile(f, own, maxObjects-mappings+1)
		f.Close()
		if mappings > maxObjects {
			return deepLook{crowded: true}
		}
		for inode, size := range own {
			sizes[inode] = max(sizes[inode], size)
		}
	}
	var found deepLook
	for _, size := range sizes {
		found.shared += size
	}
	return found
}

// sharedWithoutFile adds up a process's mappings of such memory by inode, from what the kernel says of its addresses, and
// counts all of its mappings, up to most of them.
func sharedWithoutFile(maps io.Reader, sizes map[string]int64, most int) int {
	n := 0
	for lines := bufio.NewScanner(maps); n < most && lines.Scan(); n++ {
		line := lines.Bytes()
		if !bytes.HasSuffix(line, []byte(" /dev/zero (deleted)")) {
			continue
		}
		fields := bytes.Fields(line)
		from, to, _ := bytes.Cut(fields[0], []byte("-"))
		low, errLow := strconv.ParseInt(string(from), 16, 64)
		high, errHigh := strconv.ParseInt(string(to), 16, 64)
		if errLow == nil && errHigh == nil && len(fields) > 4 {
			sizes[string(fields[4])] += high - low
		}
	}
	return n
}

// locks counts the locks on parts of files that processes have, of which one may have any number. It stops past maxObjects.
func (w *watchdog) locks(pids []string) int {
	locks, buffer := 0, make([]byte, 16<<10)
	for _, pid := range pids {
		if locks > maxObjects {
			break
		}
		dir, err := unix.Openat(w.proc, pid+"/fdinfo", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			continue // it has ended
		}
		for _, name := range names(dir, buffer, nil) {
			if locks += locksOf(dir, name, buffer); locks > maxObjects {
				break
			}
		}
		unix.Close(dir)
	}
	return locks
}

// describing is the most lines that the kernel tells of a descriptor beside its locks, of which each has one.
const describing = 16

// locksOf counts the locks that a process has on the file of its descriptor.
func locksOf(dir int, descriptor string, buffer []byte) int {
	fd, err := unix.Openat(dir, descriptor, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0
	}
	defer unix.Close(fd)
	return max(0, countLines(fd, buffer)-describing)
}

// countLines counts the lines of one of the kernel's accounts, to its end or until it has more than maxObjects.
func countLines(fd int, buffer []byte) int {
	lines := 0
	for lines <= maxObjects {
		n, err := unix.Read(fd, buffer)
		if err != nil || n <= 0 {
			break
		}
		lines += bytes.Count(buffer[:n], []byte("\n"))
	}
	return lines
}

// names adds what a folder lists to all.
func names(dir int, buffer []byte, all []string) []string {
	for {
		n, err := unix.ReadDirent(dir, buffer)
		if err != nil || n <= 0 {
			return all
		}
		_, _, all = unix.ParseDirent(buffer[:n], -1, all)
	}
}

// spareSockets are so many that they count for nothing: event loops and pools have a few each.
const spareSockets = 64

// sockets gives the most that the group's sockets can hold, which is in no process's account either. A socket that is
// closed is still one of them as long as what it sent is not received.
func (w *watchdog) sockets() int64 {
	body, err := readAt(w.proc, "self/net/sockstat", w.status)
	if err != nil {
		return 0
	}
	_, rest, _ := bytes.Cut(body, []byte("sockets: used "))
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	return max(0, number(line)-spareSockets) * w.socketSize
}

// socketSize asks for the largest buffer that a socket may have here.
func socketSize() int64 {
	const usual = 416 << 10
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return usual
	}
	defer unix.Close(fd)
	var largest int
	for _, buffer := range []int{unix.SO_SNDBUF, unix.SO_RCVBUF} {
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, buffer, 1<<30); err != nil {
			return usual
		}
		size, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, buffer)
		if err != nil {
			return usual
		}
		largest = max(largest, size)
	}
	return int64(largest)
}
