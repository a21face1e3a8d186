package local

import (
	"context"
	"crypto/sha256"
	"errors"
	"hash"
	"io"
	"os"

	"treeline/internal/sandbox"

	"golang.org/x/sys/unix"
)

// Open reads a file of the tree that was taken.
func (s *Session) Open(_ context.Context, path string) (io.ReadCloser, error) {
	if s.taken == nil || s.closed {
		return nil, &sandbox.TreeUnreadable{Path: path, Err: errors.New("the tree was not taken, or the session is closed")}
	}
	want, ok := s.taken.Find(path)
	if !ok {
		return nil, &sandbox.TreeUnreadable{Path: path, Err: unix.ENOENT}
	}
	fd, err := beneath(int(s.trees[0].Fd()), join(workspaceRoot, path), unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, &sandbox.TreeUnreadable{Path: path, Err: err}
	}
	return &checked{file: os.NewFile(uintptr(fd), path), want: want, hasher: sha256.New()}, nil
}

// checked is a file that fails at its end unless it gave the bytes it should.
type checked struct {
	file   *os.File
	want   sandbox.File
	hasher hash.Hash
}

func (c *checked) Read(p []byte) (int, error) {
	n, err := c.file.Read(p)
	c.hasher.Write(p[:n])
	if err == io.EOF && [32]byte(c.hasher.Sum(nil)) != c.want.SHA256 {
		return n, &sandbox.TreeUnreadable{Path: c.want.Path, Err: errors.New("its bytes are not those that were listed")}
	}
	return n, err
}

func (c *checked) Close() error { return c.file.Close() }
