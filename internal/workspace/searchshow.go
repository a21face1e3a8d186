package workspace

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf8"
)

// stretch is where a search's matches are written: lines of one file after another, within one budget.
type stretch struct {
	s      *search
	path   string
	body   []byte
	left   int
	chunk  []string // what precedes the next match: it is written with it or not at all
	counts lineCounter
	// written is the byte up to which lines of this file were written, -1 if none was.
	written int
}

// lineCounter numbers lines of a body that are asked for in order.
type lineCounter struct{ at, number int }

func (c *lineCounter) numberAt(body []byte, at int) int {
	c.number += bytes.Count(body[c.at:at], []byte{'\n'})
	c.at = at
	return c.number
}

// render writes the matches and their context, in order, as long as the budget lasts.
func (s *search) render() {
	st := stretch{s: s, left: s.limits.SearchChars}
	for i, body := range s.bodies {
		if s.hits[i] == 0 {
			continue
		}
		st.path, st.body, st.written, st.counts = s.paths[i], body, -1, lineCounter{number: 1}
		if !st.file() {
			s.data.Cut = CutCharacters
			return
		}
	}
}

// file writes the matches of one file; false means that the budget is spent.
func (st *stretch) file() bool {
	st.chunk = append(st.chunk[:0], st.path+"\n")
	if st.s.shown.Len() > 0 {
		st.chunk[0] = "\n" + st.chunk[0]
	}
	finders, hits, found := st.start()
	for {
		first := -1
		for q := range hits {
			if found[q] && (first < 0 || hits[q].line.Start < hits[first].line.Start) {
				first = q
			}
		}
		if first < 0 {
			return st.after(len(st.body))
		}
		line := hits[first].line
		if !st.after(line.Start) {
			return false
		}
		st.before(line.Start)
		if !st.match(line, hits, found) {
			return false
		}
		for q := range hits {
			if found[q] && hits[q].line.Start == line.Start {
				hits[q], found[q] = finders[q].nextLine(line.Next)
			}
		}
	}
}

func (st *stretch) start() (finders []finder, hits []lineHit, found []bool) {
	n := len(st.s.needles)
	finders, hits, found = make([]finder, n), make([]lineHit, n), make([]bool, n)
	for q := range finders {
		finders[q] = st.s.needles[q].in(st.body)
		hits[q], found[q] = finders[q].nextLine(0)
	}
	return finders, hits, found
}

// after writes the context after the last match, up to the line that begins at byte limit.
func (st *stretch) after(limit int) bool {
	if st.written < 0 {
		return true
	}
	for range st.s.req.ContextLines {
		if st.written >= limit {
			break
		}
		line := lineAt(st.body, st.written)
		number := st.counts.numberAt(st.body, line.Start)
		if !st.write(st.contextLine(number, line)) {
			return false
		}
		st.written = line.Next
	}
	return true
}

// before gathers the context before the match on the line that begins at byte at, as far as it was not written.
func (st *stretch) before(at int) {
	from, lines := at, 0
	for lines < st.s.req.ContextLines && from > max(st.written, 0) {
		from = lineBefore(st.body, from).Start
		lines++
	}
	if st.written >= 0 && st.written < from && st.s.req.ContextLines > 0 {
		st.chunk = append(st.chunk, "--\n")
	}
	for from < at {
		line := lineAt(st.body, from)
		st.chunk = append(st.chunk, st.contextLine(st.counts.numberAt(st.body, from), line))
		from = line.Next
	}
}

// match writes a matching line with what was gathered before it.
func (st *stretch) match(line Line, hits []lineHit, found []bool) bool {
	number := st.counts.numberAt(st.body, line.Start)
	var matches []Match
	var queries []string
	first := lineHit{start: -1}
	for q, hit := range hits {
		if !found[q] || hit.line.Start != line.Start {
			continue
		}
		column := utf8.RuneCount(st.body[line.Start:hit.start]) + 1
		matches = append(matches, Match{st.path, number, column, st.s.req.Queries[q]})
		queries = append(queries, strconv.Itoa(q+1))
		if first.start < 0 || hit.start < first.start {
			first = hit
		}
	}
	label := strconv.Itoa(number) + ":"
	if len(hits) > 1 {
		label += strings.Join(queries, ",") + ":"
	}
	st.chunk = append(st.chunk, label+"\t"+st.excerpt(line, first)+"\n")
	ok := st.write(st.chunk...)
	st.chunk = st.chunk[:0]
	if ok {
		st.s.data.Matches = append(st.s.data.Matches, matches...)
		st.written = line.Next
	}
	return ok
}

// write writes all of the parts or, where they are past the budget, none.
func (st *stretch) write(parts ...string) bool {
	chars := 0
	for _, p := range parts {
		chars += utf8.RuneCountInString(p)
	}
	if chars > st.left {
		return false
	}
	st.left -= chars
	for _, p := range parts {
		st.s.shown.WriteString(p)
	}
	return true
}

func (st *stretch) contextLine(number int, line Line) string {
	text := string(st.body[line.Start:line.End])
	head := prefixChars(text, st.s.limits.SearchLineChars)
	if len(head) < len(text) {
		head += " " + cutNotice("%d more characters of this line", utf8.RuneCountInString(text[len(head):]))
	}
	return strconv.Itoa(number) + "-\t" + head + "\n"
}

// excerpt gives the line that a match is on, or, where the line is long, what is around the match.
func (st *stretch) excerpt(line Line, hit lineHit) string {
	text := st.body[line.Start:line.End]
	most := st.s.limits.SearchLineChars
	if len(text) <= most || utf8.RuneCount(text) <= most {
		return string(text)
	}
	before, match, after := st.body[line.Start:hit.start], st.body[hit.start:hit.end], st.body[hit.end:line.End]
	chars, matchChars, charsAfter := utf8.RuneCount(before), utf8.RuneCount(match), utf8.RuneCount(after)
	if matchChars >= most {
		shown := prefixChars(string(match), most)
		return sides(chars, shown, matchChars-most+charsAfter)
	}
	room := most - matchChars
	left := min(chars, max(room/2, room-charsAfter))
	right := min(charsAfter, room-left)
	shown := suffixChars(string(before), left) + string(match) + prefixChars(string(after), right)
	return sides(chars-left, shown, charsAfter-right)
}

// sides writes how much is cut on each side of what is shown of a line.
func sides(before int, shown string, after int) string {
	if before > 0 {
		shown = cutNotice("%d characters before this", before) + " " + shown
	}
	if after > 0 {
		shown += " " + cutNotice("%d characters after this", after)
	}
	return shown
}
