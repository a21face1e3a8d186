package workspace

import (
	"fmt"
	"strings"

	"treeline/internal/call"
)

// checkRanges gathers the edits that reach past the file; an insert may stand right behind its last line.
func checkRanges(d Document, edits []Edit) failures {
	wrong := failures{edits: len(edits)}
	var x *excerpts
	for i, e := range edits {
		l := lineEditOf(i, e)
		if !l.outside(d) {
			continue
		}
		if x == nil {
			x = newExcerpts(d.Bytes())
		}
		wrong.add(i, refuseOutOfFile(x, l, wrong.none()))
		if wrong.enough(i, call.RangeOutOfFile) {
			break
		}
	}
	return wrong
}

func (l lineEdit) outside(d Document) bool { return l.end > len(d.Lines) || l.start > len(d.Lines)+1 }

func refuseOutOfFile(x *excerpts, l lineEdit, first bool) *call.Refusal {
	n := len(x.doc.Lines)
	var b strings.Builder
	fmt.Fprintf(&b, "the file has %s; outside it: %s.", plural(n, "line"), l.place())
	if l.start > n {
		words, _ := x.sayElsewhere(l)
		b.WriteString(words)
	} else {
		fmt.Fprintf(&b, ` To replace all from line %d on: {"startLine": %d, "endLine": %d}.`, l.start, l.start, n)
	}
	if first {
		fmt.Fprintf(&b, ` To add lines behind the last one: {"startLine": %d, "endLine": %d, "anchor": "", "text": "new lines"}.`, n+1, n)
	}
	return call.Refuse(call.RangeOutOfFile, "%s", b.String())
}

// meantEdit is an edit at the range that it seems to mean; where that is not known it has the range given.
type meantEdit struct {
	lineEdit
	known, anchored bool
}

// checkAnchors compares the anchors with their lines, in the order in which the edits were given, and tells what range
// each edit means. Of edits that reach past the file only those that begin in it are compared.
func checkAnchors(d Document, edits []Edit, wrong *failures) []meantEdit {
	meant := make([]meantEdit, len(edits))
	var x *excerpts
	full := false
	for i, e := range edits {
		l := lineEditOf(i, e)
		meant[i] = meantEdit{lineEdit: l}
		switch {
		case full || l.outside(d) && l.start > len(d.Lines):
		case anchored(d, l):
			meant[i].known, meant[i].anchored = !l.outside(d), true
		default:
			if x == nil {
				x = newExcerpts(d.Bytes())
			}
			r, start := refuseAnchor(x, l)
			wrong.add(i, r)
			full = wrong.enough(i, call.AnchorMoved, call.AnchorIsLastLine)
			if at := l.at(start); start > 0 && !at.outside(d) {
				meant[i].lineEdit, meant[i].known = at, true
			}
		}
	}
	return meant
}

// at is the edit with its range moved so that it begins at start.
func (l lineEdit) at(start int) lineEdit {
	l.start, l.end = start, l.end+start-l.start
	return l
}

// anchored reports whether the anchor is the text of the edit's first line. A newline that closes the anchor is let
// pass: no line's text has one, so it cannot mean another line.
func anchored(d Document, l lineEdit) bool {
	line := ""
	if l.start <= len(d.Lines) {
		line = string(d.Text(l.start))
	}
	return isLine(line, l.anchor)
}

func isLine(line, anchor string) bool {
	return line == anchor || line == strings.TrimSuffix(lf(anchor), "\n")
}

// checkRepeats gathers the replacements whose last line retypes the line after the range, which would then stand twice.
func checkRepeats(d Document, edits []meantEdit, wrong *failures) {
	var starts map[int]string
	for i, l := range edits {
		lines := newLines(l.text)
		if !l.known || l.inserts() || len(lines) == 0 || l.end >= len(d.Lines) {
			continue
		}
		last, next := lines[len(lines)-1], string(d.Text(l.end+1))
		if last != next || last == string(d.Text(l.end)) || !hasWord(last) {
			continue
		}
		if starts == nil {
			starts = firstLines(edits)
		}
		// An edit that replaces the next line by something else moves it: retyped here, it does not stand twice.
		if first, replaced := starts[l.end+1]; replaced && first != next {
			continue
		}
		wrong.add(i, refuseRepeat(l, next))
		if wrong.enough(i, call.RepeatsNextLine) {
			return
		}
	}
}

// firstLines gives, by the line at which replacements begin, the first line that each puts there; "" if it removes.
func firstLines(edits []meantEdit) map[int]string {
	starts := make(map[int]string, len(edits))
	for _, l := range edits {
		if l.inserts() {
			continue
		}
		first, _, _ := strings.Cut(lf(l.text), "\n")
		starts[l.start] = first
	}
	return starts
}

func refuseRepeat(l meantEdit, next string) *call.Refusal {
	with := "the same anchor and text"
	if !l.anchored {
		with = fmt.Sprintf("line %d's text as anchor and the same text", l.start)
	}
	return call.Refuse(call.RepeatsNextLine, `send {"startLine": %d, "endLine": %d} with %s, which ends in the line after the range. `+
		"Line %d, right behind %s, would be there twice:\n%d\t%s\n(To have it twice, use this range and end text in that line twice.)",
		l.start, l.end+1, with, l.end+1, l.place(), l.end+1, clip(next, 0))
}
