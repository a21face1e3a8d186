package local

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// deepEvery is how many looks apart the watchdog asks for memory that is in no process's account.
const deepEvery = 10

// unseen gives the size of all memory that processes share without a file. It stays when they let go of its pages, until
// the last mapping is gone, so that no process may have it in its account. Nothing tells how much of it was ever touched.
func (w *watchdog) unseen() int64 {
	sizes := map[string]int64{} // by inode: it is the same in every process that maps it
	for _, p := range w.looked {
		fd, err := unix.Openat(w.proc, p.pid+"/maps", unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			continue // it has ended
		}
		f := os.NewFile(uintptr(fd), "maps")
		own := map[string]int64{}
		sharedWithoutFile(f, own)
		f.Close()
		for inode, size := range own {
			sizes[inode] = max(sizes[inode], size)
		}
	}
	var all int64
	for _, size := range sizes {
		all += size
	}
	return all
}

// sharedWithoutFile adds up a process's mappings of such memory by inode, from what the kernel says of its addresses.
func sharedWithoutFile(maps io.Reader, sizes map[string]int64) {
	for lines := bufio.NewScanner(maps); lines.Scan(); {
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
}

// spareSockets are so many that they count for nothing: event loops and pools have a few each.
const spareSockets = 64

// sockets gives the most that the group's sockets can hold, which is in no process's account either.
func (w *watchdog) sockets() int64 {
	fd, err := unix.Openat(w.proc, "self/net/unix", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0
	}
	defer unix.Close(fd)
	lines := int64(-1) // the first is a heading
	for {
		n, err := unix.Read(fd, w.entries)
		if err != nil || n <= 0 {
			break
		}
		lines += int64(bytes.Count(w.entries[:n], []byte("\n")))
	}
	return max(0, lines-spareSockets) * w.socketSize
}

// socketSize asks for the largest buffer that a socket may have here.
func socketSize() int64 {
	const usual = 416 << 10
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return usual
	}
	defer unix.Close(fd)
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF, 1<<30); err != nil {
		return usual
	}
	size, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF)
	if err != nil {
		return usual
	}
	return int64(size)
}
