package local

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// maxMessage bounds a message between worker, launcher and init; the longest carries the runtime's mounts and the filter.
const maxMessage = 128 << 10

// channel carries JSON messages and descriptors between two of our own processes. It does without package net, for which a
// child would have to wait: see init.
type channel struct {
	file *os.File
	raw  syscall.RawConn
}

// socketPair makes the two ends of a channel.
func socketPair(name string) (near, far *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("make a socket pair: %w", err)
	}
	return os.NewFile(uintptr(fds[0]), name), os.NewFile(uintptr(fds[1]), name), nil
}

// newPair makes a channel and the file of its other end, which is for a child.
func newPair(name string) (*channel, *os.File, error) {
	mine, far, err := socketPair(name)
	if err != nil {
		return nil, nil, err
	}
	near, err := newChannel(mine)
	if err != nil {
		far.Close()
		return nil, nil, err
	}
	return near, far, nil
}

// newChannel takes over a file that is one end of a socket pair. A file that was handed to a child waits in the kernel, so that
// a new one is made of it, which waits here and ends waiting when it is closed.
func newChannel(f *os.File) (*channel, error) {
	defer f.Close()
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open the channel: %w", err)
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("open the channel: %w", err)
	}
	file := os.NewFile(uintptr(fd), f.Name())
	raw, err := file.SyscallConn()
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("open the channel: %w", err)
	}
	return &channel{file, raw}, nil
}

func (c *channel) send(message any, fds ...int) error {
	body, err := json.Marshal(message)
	if err != nil {
		return fmt.Errorf("encode a message: %w", err)
	}
	var rights []byte
	if len(fds) > 0 {
		rights = unix.UnixRights(fds...)
	}
	var failed error
	err = c.raw.Write(func(fd uintptr) (done bool) {
		for failed = unix.EINTR; failed == unix.EINTR; {
			failed = unix.Sendmsg(int(fd), body, rights, nil, unix.MSG_NOSIGNAL)
		}
		return failed != unix.EAGAIN
	})
	if err := errors.Join(err, failed); err != nil {
		return fmt.Errorf("send a message: %w", err)
	}
	return nil
}

// receive waits for a message. The files that came with it are the caller's to close.
func (c *channel) receive(message any) ([]*os.File, error) {
	body, rights := make([]byte, maxMessage), make([]byte, unix.CmsgSpace(8*4))
	var n, rn, flags int
	var failed error
	err := c.raw.Read(func(fd uintptr) (done bool) {
		for failed = unix.EINTR; failed == unix.EINTR; {
			n, rn, flags, _, failed = unix.Recvmsg(int(fd), body, rights, unix.MSG_CMSG_CLOEXEC)
		}
		return failed != unix.EAGAIN
	})
	if err := errors.Join(err, failed); err != nil {
		return nil, fmt.Errorf("receive a message: %w", err)
	}
	files, err := parseRights(rights[:rn])
	if err != nil {
		return nil, err
	}
	if flags&(unix.MSG_TRUNC|unix.MSG_CTRUNC) != 0 {
		closeAll(files)
		return nil, fmt.Errorf("receive a message: it was cut")
	}
	if n == 0 {
		closeAll(files)
		return nil, fmt.Errorf("receive a message: %w", io.EOF)
	}
	if err := json.Unmarshal(body[:n], message); err != nil {
		closeAll(files)
		return nil, fmt.Errorf("decode a message: %w", err)
	}
	return files, nil
}

func (c *channel) deadline(t time.Time) { _ = c.file.SetDeadline(t) }

func (c *channel) close() error { return c.file.Close() }

func parseRights(b []byte) ([]*os.File, error) {
	if len(b) == 0 {
		return nil, nil
	}
	messages, err := unix.ParseSocketControlMessage(b)
	if err != nil {
		return nil, fmt.Errorf("read passed descriptors: %w", err)
	}
	var files []*os.File
	for _, m := range messages {
		fds, err := unix.ParseUnixRights(&m)
		if err != nil {
			closeAll(files)
			return nil, fmt.Errorf("read passed descriptors: %w", err)
		}
		for _, fd := range fds {
			files = append(files, os.NewFile(uintptr(fd), "passed"))
		}
	}
	return files, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}

// stepError is an error that crosses a process boundary: what was being done, and the system's error number.
type stepError struct {
	Step  string `json:"step"`
	Errno int    `json:"errno"`
	Text  string `json:"text"`
}

func (e *stepError) Error() string { return e.Step + ": " + e.Text }

// Unwrap gives the system's error, so that errors.Is works as it would have on the other side.
func (e *stepError) Unwrap() error {
	if e.Errno == 0 {
		return nil
	}
	return unix.Errno(e.Errno)
}
