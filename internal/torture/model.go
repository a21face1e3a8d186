package torture

import (
	"bytes"
	"maps"
	"slices"
	"strings"

	"treeline/internal/call"
)

// replacementChars is the length past which a file is not replaced whole.
const replacementChars = 4_000

// model is what a workspace should hold: calls applied one after another to a map, in the plainest way.
type model struct {
	files  map[string][]byte
	failed map[string]map[string]bool // by turn: the paths of its writes that failed
	limits Settings
	// states are what the files were after each place in the order, of the present generation, which began after floor.
	states map[int64]map[string][]byte
	last   int64
	floor  int64
	// artifacts are the versions of each, from the first; they outlive the files.
	artifacts map[string][][]byte
	common    []version
	doing     string // the call that is being done
}

func newModel(limits Settings) *model {
	m := &model{failed: map[string]map[string]bool{}, limits: limits, artifacts: map[string][][]byte{}}
	m.empty()
	return m
}

// empty takes everything away but artifacts, as the deletion of a conversation does.
func (m *model) empty() {
	m.files, m.floor = map[string][]byte{}, m.last
	m.states = map[int64]map[string][]byte{m.floor: m.files}
}

// did notes that all calls up to a place in the order are done.
func (m *model) did(seq int64) { m.last, m.states[seq] = seq, m.files }

// verdict is what a call should come to.
type verdict struct {
	status call.Status
	// codes are those that may come: where two things are wrong with a call, either may be named.
	codes                      []call.Code
	created, modified, deleted []string
	// check looks at what the result says, where that can be known.
	check func(call.Result) error
}

func refused(codes ...call.Code) verdict { return verdict{status: call.Refused, codes: codes} }

// set makes the files what next says, if the limits allow, and gives the verdict on a call that does so.
func (m *model) set(next map[string][]byte) verdict {
	v := verdict{status: call.OK, codes: []call.Code{""}}
	for _, p := range slices.Sorted(maps.Keys(next)) {
		before, was := m.files[p]
		switch {
		case !was:
			v.created = append(v.created, p)
		case !bytes.Equal(before, next[p]):
			v.modified = append(v.modified, p)
		}
	}
	for _, p := range slices.Sorted(maps.Keys(m.files)) {
		if _, is := next[p]; !is {
			v.deleted = append(v.deleted, p)
		}
	}
	if len(v.created)+len(v.modified)+len(v.deleted) == 0 {
		return refused(call.NoChange)
	}
	if (len(next) > len(m.files) && len(next) > m.limits.WorkspaceFiles) || (size(next) > size(m.files) && size(next) > m.limits.WorkspaceBytes) {
		return refused(call.WorkspaceFull)
	}
	m.files = next
	return v
}

func size(files map[string][]byte) (n int64) {
	for _, b := range files {
		n += int64(len(b))
	}
	return n
}

// clash reports whether a file cannot be at a path, because a file is where a folder would be or the reverse.
func (m *model) clash(path string) bool { return clashes(slices.Collect(maps.Keys(m.files)), path) }

func clashes(others []string, path string) bool {
	for _, other := range others {
		if strings.HasPrefix(other, path+"/") || strings.HasPrefix(path, other+"/") {
			return true
		}
	}
	return false
}

// newFile is one file of a write.
type newFile struct {
	Path    string `json:"path"`
	Content string `json:"content"`
}

func (m *model) write(files []newFile) verdict {
	next := maps.Clone(m.files)
	var wrong []call.Code
	var batch []string
	for _, f := range files {
		if m.clash(f.Path) || clashes(batch, f.Path) {
			wrong = append(wrong, call.PathClash)
		}
		if old, is := m.files[f.Path]; is && len(old) > replacementChars { // everything here is ASCII
			wrong = append(wrong, call.WholeFileReplacement)
		}
		next[f.Path], batch = []byte(f.Content), append(batch, f.Path)
	}
	if len(wrong) > 0 {
		return refused(wrong...)
	}
	return m.set(next)
}

// textEdit is an edit by text.
type textEdit struct {
	Find    string `json:"find"`
	Replace string `json:"replace"`
	All     bool   `json:"all,omitempty"`
}

func (m *model) editText(path string, e textEdit) verdict {
	old, is := m.files[path]
	if !is {
		return m.absent(path)
	}
	n := bytes.Count(old, []byte(e.Find))
	switch {
	case n == 0:
		return refused(call.TextNotFound)
	case n > 1 && !e.All:
		return refused(call.TextNotUnique)
	}
	next := maps.Clone(m.files)
	next[path] = bytes.ReplaceAll(old, []byte(e.Find), []byte(e.Replace))
	return m.set(next)
}

// lineEdit is an edit by line, of one line or before one.
type lineEdit struct {
	StartLine int    `json:"startLine"`
	EndLine   int    `json:"endLine"`
	Anchor    string `json:"anchor"`
	Text      string `json:"text"`
}

func (m *model) editLine(path string, e lineEdit) verdict {
	old, is := m.files[path]
	if !is {
		return m.absent(path)
	}
	lines := splitLines(old)
	inserts := e.EndLine == e.StartLine-1
	if e.StartLine > len(lines)+1 || (!inserts && e.StartLine > len(lines)) {
		return refused(call.RangeOutOfFile)
	}
	there := ""
	if e.StartLine <= len(lines) {
		there = lines[e.StartLine-1]
	}
	if there != e.Anchor {
		return refused(call.AnchorMoved)
	}
	at := e.StartLine - 1
	if inserts {
		lines = slices.Insert(lines, at, e.Text)
	} else {
		lines[at] = e.Text
	}
	next := maps.Clone(m.files)
	next[path] = []byte(strings.Join(lines, "\n") + "\n") // every file here ends its last line
	return m.set(next)
}

func splitLines(b []byte) []string {
	if len(b) == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
}

// guarded reports whether a path may not be removed in a turn, because its writing failed there and it is long.
func (m *model) guarded(turn, path string) bool {
	return m.failed[turn][path] && len(m.files[path]) > replacementChars
}

func (m *model) remove(turn string, paths []string) verdict {
	next := maps.Clone(m.files)
	var wrong []call.Code
	for _, p := range paths {
		switch _, is := m.files[p]; {
		case !is:
			wrong = append(wrong, m.absent(p).codes...)
		case m.guarded(turn, p):
			wrong = append(wrong, call.DeleteAfterRefusedWrite)
		}
		delete(next, p)
	}
	if len(wrong) > 0 {
		return refused(wrong...)
	}
	return m.set(next)
}

// absent is the verdict on a call that needs a file where none is.
func (m *model) absent(path string) verdict {
	if m.isFolder(path) {
		return refused(call.PathIsFolder)
	}
	return refused(call.PathNotFound)
}

func (m *model) isFolder(path string) bool {
	for other := range m.files {
		if strings.HasPrefix(other, path+"/") {
			return true
		}
	}
	return false
}

func (m *model) move(turn, from, to string) verdict {
	old, is := m.files[from]
	switch {
	case !is:
		return m.absent(from)
	case from == to:
		return refused(call.NoChange)
	}
	var wrong []call.Code
	if m.guarded(turn, from) {
		wrong = append(wrong, call.DeleteAfterRefusedWrite)
	}
	next := maps.Clone(m.files)
	delete(next, from)
	if _, taken := next[to]; taken || clashes(slices.Collect(maps.Keys(next)), to) {
		wrong = append(wrong, call.PathClash)
	}
	if len(wrong) > 0 {
		return refused(wrong...)
	}
	next[to] = old
	return m.set(next)
}

// wrote notes how a write ended, for the guard of removals.
func (m *model) wrote(turn string, paths []string, status call.Status) {
	if status == call.OK {
		return
	}
	if m.failed[turn] == nil {
		m.failed[turn] = map[string]bool{}
	}
	for _, p := range paths {
		m.failed[turn][p] = true
	}
}
