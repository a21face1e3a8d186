package workspace

import (
	"bytes"
	"sort"
	"strings"

	"treeline/internal/call"
)

// excerpts is a file in which excerpts are looked for. Excerpts match across "\n" and "\r\n", so the search runs over a
// text in which every newline is "\n"; a hit there never begins or ends inside a "\r\n".
type excerpts struct {
	doc Document
	// norm is the body with every newline as "\n"; it is the body itself where that has no "\r\n".
	norm []byte
	// starts has the offset in norm of each line; nil where norm is the body.
	starts []int
	near   nearness
}

func newExcerpts(file []byte) *excerpts {
	x := &excerpts{doc: Split(file), near: nearness{folded: map[folding][]byte{}}}
	x.norm = x.doc.Body
	if !bytes.Contains(x.doc.Body, []byte("\r\n")) {
		return x
	}
	x.norm = make([]byte, 0, len(x.doc.Body))
	x.starts = make([]int, len(x.doc.Lines))
	for i, l := range x.doc.Lines {
		x.starts[i] = len(x.norm)
		x.norm = append(x.norm, x.doc.Body[l.Start:l.End]...)
		if l.Next > l.End {
			x.norm = append(x.norm, '\n')
		}
	}
	return x
}

// lf gives s with every newline as "\n".
func lf(s string) string { return strings.ReplaceAll(s, "\r\n", "\n") }

// start gives the offset in norm of line i, counted from 0.
func (x *excerpts) start(i int) int {
	if x.starts == nil {
		return x.doc.Lines[i].Start
	}
	return x.starts[i]
}

// line gives the line, counted from 0, that the byte at offset p of norm is in. The end of the file is in its last line.
func (x *excerpts) line(p int) int {
	n := sort.Search(len(x.doc.Lines), func(i int) bool { return x.start(i) > p })
	return max(n-1, 0)
}

// body gives the offset in the body for offset p of norm.
func (x *excerpts) body(p int) int {
	if x.starts == nil {
		return p
	}
	if p == len(x.norm) {
		return len(x.doc.Body)
	}
	i := x.line(p)
	return x.doc.Lines[i].Start + p - x.starts[i]
}

func planTextEdits(x *excerpts, edits []Edit, guard editGuard) ([]byte, *call.Refusal) {
	perEdit, wrong := locateAll(x, edits)
	spans := merged(perEdit)
	for i := 1; i < len(spans); i++ {
		if spans[i].start < spans[i-1].end {
			wrong.add(-1, refuseTextOverlap(x, spans[i-1], spans[i]))
			break
		}
	}
	if r := wrong.refusal(); r != nil {
		return nil, r
	}
	if guard.whole != nil && len(spans) > 0 && spans[0].start == 0 && spans[0].end == len(x.norm) {
		return nil, guard.whole()
	}
	return replaceSpans(x, spans, edits, guard)
}

// locateAll finds what every edit replaces. Edits that fail are told together, so that one more call can mend them all.
func locateAll(x *excerpts, edits []Edit) ([][]span, failures) {
	var perEdit [][]span
	wrong := failures{edits: len(edits)}
	covered := 0
	for i, e := range edits {
		// Hits that cover more than the file overlap somewhere: no more of them are needed to say so.
		found, r := locate(x, i, e, covered <= len(x.norm))
		if r != nil {
			wrong.add(i, r)
			if wrong.enough(i, call.TextNotFound, call.TextNotUnique) {
				break
			}
			continue
		}
		if len(found) > 0 {
			perEdit = append(perEdit, found)
			covered += len(found) * (found[0].end - found[0].start)
		}
	}
	return perEdit, wrong
}

// locate finds what edit i replaces, as offsets in norm. Without keep it only checks that it may.
func locate(x *excerpts, i int, e Edit, keep bool) ([]span, *call.Refusal) {
	find := []byte(lf(*e.Find))
	first := bytes.Index(x.norm, find)
	if first < 0 {
		return nil, refuseNotFound(x, e)
	}
	if !e.all() {
		if bytes.Contains(x.norm[first+1:], find) {
			return nil, refuseNotUnique(x, find)
		}
		return []span{{first, first + len(find), i}}, nil
	}
	count := bytes.Count(x.norm, find)
	if want := e.ExpectedMatches; want != nil && *want != count {
		return nil, refuseOtherCount(x, *want, count, everyHit(x.norm, find, i, tellLines))
	}
	if !keep {
		return nil, nil
	}
	return everyHit(x.norm, find, i, count), nil
}

// everyHit finds the first so many hits of find, leftmost and none overlapping another.
func everyHit(text, find []byte, edit, most int) []span {
	var found []span
	for at := 0; len(found) < most; {
		n := bytes.Index(text[at:], find)
		if n < 0 {
			break
		}
		if found == nil {
			found = make([]span, 0, most)
		}
		found = append(found, span{at + n, at + n + len(find), edit})
		at += n + len(find)
	}
	return found
}

// merged joins lists that are each sorted by start into one.
func merged(lists [][]span) []span {
	for len(lists) > 1 {
		half := lists[:0:0]
		for i := 0; i < len(lists); i += 2 {
			if i+1 == len(lists) {
				half = append(half, lists[i])
				break
			}
			half = append(half, mergeTwo(lists[i], lists[i+1]))
		}
		lists = half
	}
	if len(lists) == 0 {
		return nil
	}
	return lists[0]
}

func mergeTwo(a, b []span) []span {
	out := make([]span, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		if b[0].start < a[0].start {
			out, b = append(out, b[0]), b[1:]
		} else {
			out, a = append(out, a[0]), a[1:]
		}
	}
	return append(append(out, a...), b...)
}

// occurrences finds every place at which find starts in text, also where the places overlap, in time linear in both.
// It keeps the first few and counts the rest.
func occurrences(text, find []byte, keep int) (first []int, count int) {
	m := newMatcher(find)
	state := 0
	for i := 0; i < len(text); i++ {
		if state = m.next(state, text[i]); state == len(find) {
			if count++; count <= keep {
				first = append(first, i+1-len(find))
			}
			state = int(m.fail[state-1])
		}
	}
	return first, count
}

// matcher is the automaton of Knuth, Morris and Pratt: its state is how much of the pattern the text now ends in.
type matcher struct {
	pattern []byte
	fail    []int32
}

func newMatcher(pattern []byte) matcher {
	m := matcher{pattern, make([]int32, len(pattern))}
	for i := 1; i < len(pattern); i++ {
		m.fail[i] = int32(m.next(int(m.fail[i-1]), pattern[i]))
	}
	return m
}

// next gives the state after one more byte; state is less than the length of the pattern.
func (m matcher) next(state int, b byte) int {
	for state > 0 && m.pattern[state] != b {
		state = int(m.fail[state-1])
	}
	if m.pattern[state] == b {
		state++
	}
	return state
}
