package sandbox

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
)

// Tree is everything that a run left, read whole.
type Tree struct {
	// Files are the regular files below workspace/, sorted by path.
	Files []File
	// Ignored is what lies below workspace/ and cannot be kept, sorted by path. At most MaxListed, IgnoredMore counts the
	// rest.
	Ignored     []Ignored
	IgnoredMore int
	// Outside are the paths, below the working folder, of what was left neither in workspace/ nor in a read-only folder,
	// sorted; a folder stands for all that is in it only where it is empty or too deep. At most MaxListed, OutsideMore
	// counts the rest.
	Outside     []string
	OutsideMore int
	// Manifest is the reader's own account of Files.
	Manifest Manifest
}

// MaxListed bounds Tree.Ignored and Tree.Outside.
const MaxListed = 1000

// File is one regular file of a tree.
type File struct {
	// Path below workspace/, separated by "/": the name's raw bytes, which need not be UTF-8.
	Path   string
	Size   int64
	SHA256 [32]byte
}

// Ignored is an entry that is not a file that can be kept.
type Ignored struct {
	// Path as File.Path.
	Path   string
	Reason string
}

// Manifest proves that a list of files is whole.
type Manifest struct {
	Files int
	Bytes int64
	// SHA256 is over every file's path, size and hash, in order.
	SHA256 [32]byte
}

// NewManifest makes the manifest of files, which are sorted by path.
func NewManifest(files []File) Manifest {
	m := Manifest{Files: len(files)}
	h := sha256.New()
	for _, f := range files {
		m.Bytes += f.Size
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(f.Path))))
		h.Write([]byte(f.Path))
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(f.Size)))
		h.Write(f.SHA256[:])
	}
	h.Sum(m.SHA256[:0])
	return m
}

// Check reports whether the tree is the one that its manifest describes, its paths sorted and each there once. The error
// is a *TreeUnreadable.
func (t Tree) Check() error {
	for i := 1; i < len(t.Files); i++ {
		if t.Files[i-1].Path >= t.Files[i].Path {
			return &TreeUnreadable{Path: t.Files[i].Path, Err: fmt.Errorf("listed out of order or twice")}
		}
	}
	if got := NewManifest(t.Files); got != t.Manifest {
		return &TreeUnreadable{Err: fmt.Errorf("the manifest speaks of %d files and %d bytes, the list of %d and %d, or their hashes differ",
			t.Manifest.Files, t.Manifest.Bytes, got.Files, got.Bytes)}
	}
	return nil
}

// Find gives the file at path.
func (t Tree) Find(path string) (File, bool) {
	i, ok := slices.BinarySearchFunc(t.Files, path, func(f File, p string) int { return strings.Compare(f.Path, p) })
	if !ok {
		return File{}, false
	}
	return t.Files[i], true
}
