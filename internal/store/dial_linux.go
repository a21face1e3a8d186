package store

import (
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// giveUpUnheard bounds how long what was sent may go without being received.
func giveUpUnheard(network, _ string, c syscall.RawConn) error {
	if !strings.HasPrefix(network, "tcp") {
		return nil
	}
	var failed error
	err := c.Control(func(fd uintptr) {
		failed = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(unheard.Milliseconds()))
	})
	if err != nil {
		return err
	}
	return failed
}
