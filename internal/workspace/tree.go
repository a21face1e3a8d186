package workspace

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"slices"
	"sort"
	"strings"
	"unicode/utf8"
)

// Kind says whether a file can be read and edited as lines.
type Kind string

const (
	// Text is a file that is valid UTF-8 without U+0000.
	Text Kind = "text"
	// Binary is any other file.
	Binary Kind = "binary"
)

// Entry is a file's record: what is known of it without its bytes.
type Entry struct {
	Path string
	// Revision is the seq of the call that last changed the file; LastRead that of the last read_file of it, 0 if none.
	Revision, LastRead int64
	SHA256             [32]byte
	Bytes              int64
	Kind               Kind
	// Lines and Characters (code points, the byte order mark left out) are 0 for a binary file.
	Lines, Characters int
}

// NewEntry measures content, the whole of the file at path, which is already a checked path.
func NewEntry(path string, content []byte, revision int64) Entry {
	e := Entry{Path: path, Revision: revision, SHA256: sha256.Sum256(content), Bytes: int64(len(content)), Kind: Binary}
	if !IsText(content) {
		return e
	}
	body := bytes.TrimPrefix(content, []byte(BOM))
	e.Kind, e.Characters, e.Lines = Text, utf8.RuneCount(body), bytes.Count(body, []byte{'\n'})
	if len(body) > 0 && body[len(body)-1] != '\n' {
		e.Lines++
	}
	return e
}

// Length is what the replacement threshold counts: characters of a text file, bytes of any other.
func (e Entry) Length() int64 {
	if e.Kind == Text {
		return int64(e.Characters)
	}
	return e.Bytes
}

// Tree is the record of every file of one workspace, sorted by path. It is not changed once made.
type Tree struct {
	entries []Entry
	bytes   int64
}

// NewTree makes a tree of entries whose paths differ. It keeps the slice if that is sorted already, else a sorted copy.
func NewTree(entries []Entry) *Tree {
	byPath := func(a, b Entry) int { return cmp.Compare(a.Path, b.Path) }
	if !slices.IsSortedFunc(entries, byPath) {
		entries = slices.Clone(entries)
		slices.SortFunc(entries, byPath)
	}
	t := &Tree{entries: entries}
	for i := range entries {
		t.bytes += entries[i].Bytes
	}
	return t
}

// Get gives the file at path.
func (t *Tree) Get(path string) (Entry, bool) {
	if i := t.search(path); i < len(t.entries) && t.entries[i].Path == path {
		return t.entries[i], true
	}
	return Entry{}, false
}

// All gives every file, sorted by path. The slice must not be changed.
func (t *Tree) All() []Entry { return t.entries }

// Below gives every file in folder and in its folders, sorted by path; "" is the root. The slice must not be changed.
func (t *Tree) Below(folder string) []Entry {
	if folder == "" {
		return t.entries
	}
	from, to := t.search(folder+"/"), t.search(folder+"0") // "0" is the byte after "/"
	return t.entries[from:to]
}

// IsFolder reports whether a file lies below path. The root is a folder even where it is empty.
func (t *Tree) IsFolder(path string) bool {
	if path == "" {
		return true
	}
	i := t.search(path + "/")
	return i < len(t.entries) && strings.HasPrefix(t.entries[i].Path, path+"/")
}

// Bytes is the size of all files together.
func (t *Tree) Bytes() int64 { return t.bytes }

// Len is the number of files.
func (t *Tree) Len() int { return len(t.entries) }

// search gives the index of the first entry whose path is not below the given one in byte order.
func (t *Tree) search(path string) int {
	return sort.Search(len(t.entries), func(i int) bool { return t.entries[i].Path >= path })
}
