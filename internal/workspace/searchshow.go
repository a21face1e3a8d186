package workspace

import (
	"bytes"
	"fmt"
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

// namedSkipped and queryChars bound what the summary takes beside the matches.
const (
	namedSkipped = 3
	queryChars   = 60
)

// text puts the summary before what was shown.
func (s *search) text() string {
	var b strings.Builder
	for q, total := range s.data.Totals {
		if len(s.data.Totals) > 1 {
			fmt.Fprintf(&b, "%d. ", q+1)
		}
		fmt.Fprintf(&b, "%s: %s in %s\n", shortQuery(total.Query), counted(total.Matches, "matching line"), counted(total.Files, "file"))
		if strings.ContainsRune(total.Query, '\n') {
			b.WriteString("   This query holds a newline and so can match nothing: a query matches within one line. Search for one of its lines.\n")
		}
	}
	fmt.Fprintf(&b, "%s searched%s.\n", counted(s.data.Searched, "file"), s.skippedText())
	if s.matches() == 0 {
		b.WriteString(s.hints())
		return strings.TrimSuffix(b.String(), "\n")
	}
	b.WriteString(s.legend())
	b.WriteString("\n" + s.shown.String())
	if s.data.Cut != "" {
		b.WriteString(cutNotice("a search shows at most %d characters: of the matches %d of %d are shown; narrow it with path, glob, longer "+
			"queries or fewer context lines", s.limits.SearchChars, len(s.data.Matches), s.matches()))
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// legend says how the lines are marked.
func (s *search) legend() string {
	marks := `Lines are marked "number:"`
	if len(s.needles) > 1 {
		marks = `Matching lines are marked "number:queries:"`
	}
	if s.req.ContextLines > 0 {
		marks += ` where they match and "number-" where they are context`
	}
	return marks + ".\n"
}

func shortQuery(q string) string {
	if head := prefixChars(q, queryChars); len(head) < len(q) {
		return strconv.Quote(head) + "..."
	}
	return strconv.Quote(q)
}

func (s *search) skippedText() string {
	n := len(s.data.Skipped)
	if n == 0 {
		return ""
	}
	var names []string
	for _, f := range s.data.Skipped {
		names = append(names, prefixChars(f.Path, 2*queryChars))
	}
	return fmt.Sprintf("; %s skipped as not text: %s", counted(n, "file"), quotedList(names, namedSkipped))
}

// hints says why nothing may have been found.
func (s *search) hints() string {
	var b strings.Builder
	if s.data.Searched+len(s.data.Skipped) == 0 && s.req.Glob != "" {
		b.WriteString(globHint(s.req.Glob, s.asked))
	}
	for _, q := range s.req.Queries {
		if looksLikePattern(q) {
			fmt.Fprintf(&b, "Queries are literal text, not patterns: %s was looked for as it stands, every character of it. Search for a plain "+
				"piece of the text instead; up to %d queries go in one call.\n", shortQuery(q), s.limits.SearchQueries)
			break
		}
	}
	if !s.req.IgnoreCase && s.data.Searched > 0 {
		b.WriteString("Case was not ignored; ignoreCase does that.\n")
	}
	return b.String()
}

// looksLikePattern reports whether a query has what regular expressions and globs are written with.
func looksLikePattern(q string) bool {
	for _, sign := range []string{".*", ".+", ".?", `\d`, `\w`, `\s`, `\b`, `\.`, `\(`, `\[`, `\S`, `\W`, `\D`, "[^", "(?", "|", "]+", "]*", ")+", ")*",
		")?", "a-z", "A-Z", "0-9", "*", "+$"} {
		if strings.Contains(q, sign) {
			return true
		}
	}
	return strings.HasPrefix(q, "^") || (strings.HasSuffix(q, "$") && len(q) > 1)
}
