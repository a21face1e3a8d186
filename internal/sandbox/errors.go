package sandbox

import (
	"errors"
	"fmt"
)

// ErrFull is a Put past Limits.Disk, Limits.Inodes or Limits.Inputs.
var ErrFull = errors.New("the sandbox is full")

// ErrLost is a session whose sandbox is gone.
var ErrLost = errors.New("the sandbox was lost")

// Unavailable says that a driver cannot run here, why, and what to change.
type Unavailable struct {
	Driver string
	Reason string
	Remedy string
}

func (e *Unavailable) Error() string {
	text := fmt.Sprintf("sandbox %s is not available: %s", e.Driver, e.Reason)
	if e.Remedy != "" {
		text += "; " + e.Remedy
	}
	return text
}

// PathError is a path that a file cannot be put to.
type PathError struct {
	Path   string
	Reason string
}

func (e *PathError) Error() string { return fmt.Sprintf("put %q: %s", e.Path, e.Reason) }

// TreeUnreadable says that the tree could not be read whole, so that nothing follows from what was read.
type TreeUnreadable struct {
	// Path that failed, below workspace/, empty for the whole.
	Path string
	Err  error
}

func (e *TreeUnreadable) Error() string {
	return fmt.Sprintf("the tree could not be read whole: %q: %v", e.Path, e.Err)
}

func (e *TreeUnreadable) Unwrap() error { return e.Err }

// TreeTooLarge says that the tree is past Limits.TreeBytes or Limits.TreeFiles. Bytes and Files count all of it.
type TreeTooLarge struct {
	Bytes int64
	Files int
}

func (e *TreeTooLarge) Error() string {
	return fmt.Sprintf("the tree is too large: %d bytes in %d files", e.Bytes, e.Files)
}
