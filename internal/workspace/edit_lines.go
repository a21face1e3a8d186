package workspace

import (
	"cmp"
	"slices"
	"strings"
	"unicode"

	"treeline/internal/call"
)

// lineEdit is an edit by line. Where end is start-1 it inserts before start.
type lineEdit struct {
	start, end, edit int
	anchor, text     string
}

func (l lineEdit) inserts() bool { return l.end < l.start }

// lineEdits gives checked edits in the order of the file: at one place inserts as given, then what replaces it.
func lineEdits(edits []Edit) []lineEdit {
	list := make([]lineEdit, len(edits))
	for i, e := range edits {
		list[i] = lineEdit{*e.StartLine, *e.EndLine, i, *e.Anchor, *e.Text}
	}
	slices.SortFunc(list, func(a, b lineEdit) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.end, b.end), cmp.Compare(a.edit, b.edit))
	})
	// Of two that replace from one line the shorter comes first; they overlap, whatever their order.
	return list
}

// checkOverlap refuses ranges that share a line, and inserts within a range. Touching is fine.
func checkOverlap(list []lineEdit) *call.Refusal {
	var last *lineEdit // of those that replace, the one that reaches furthest
	for i := range list {
		if last != nil && list[i].start <= last.end {
			return refuseLineOverlap(*last, list[i])
		}
		if !list[i].inserts() {
			last = &list[i]
		}
	}
	return nil
}

func planLineEdits(d Document, edits []Edit, guard editGuard) ([]byte, *call.Refusal) {
	list := lineEdits(edits)
	if r := checkRanges(d, list); r != nil {
		return nil, r
	}
	if guard.whole != nil {
		for _, l := range list {
			if l.start == 1 && l.end == len(d.Lines) && !l.inserts() {
				return nil, guard.whole()
			}
		}
	}
	if r := checkAnchors(d, edits); r != nil {
		return nil, r
	}
	if r := checkRepeats(d, list); r != nil {
		return nil, r
	}
	return replaceLines(d, list), nil
}

// checkRanges refuses ranges that reach past the file; an insert may stand right behind its last line.
func checkRanges(d Document, list []lineEdit) *call.Refusal {
	var outside []lineEdit
	for _, l := range list {
		if l.end > len(d.Lines) || l.start > len(d.Lines)+1 {
			outside = append(outside, l)
		}
	}
	if len(outside) == 0 {
		return nil
	}
	return refuseOutOfFile(d, outside)
}

// checkAnchors compares the anchors with their lines, in the order in which the edits were given.
func checkAnchors(d Document, edits []Edit) *call.Refusal {
	var failed failures
	var x *excerpts
	for i, e := range edits {
		l := lineEdit{*e.StartLine, *e.EndLine, i, *e.Anchor, *e.Text}
		if anchored(d, l) {
			continue
		}
		if x == nil {
			x = newExcerpts(d.Bytes())
		}
		if failed.add(i, refuseAnchor(x, l)) {
			break
		}
	}
	return failed.refusal(len(edits))
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

// checkRepeats refuses a replacement whose last line retypes the line after the range, which would then stand twice.
func checkRepeats(d Document, list []lineEdit) *call.Refusal {
	for i, l := range list {
		lines := newLines(l.text)
		if l.inserts() || len(lines) == 0 || l.end >= len(d.Lines) {
			continue
		}
		last, next := lines[len(lines)-1], string(d.Text(l.end+1))
		if last != next || last == string(d.Text(l.end)) || !hasWord(last) || movesNext(list[i+1:], l.end+1, next) {
			continue
		}
		return refuseRepeat(l, next)
	}
	return nil
}

// movesNext reports whether another edit of the call replaces the line after a range by something else, so that
// retyping it there moves it and does not repeat it.
func movesNext(later []lineEdit, line int, text string) bool {
	for _, l := range later {
		if l.start != line || !l.inserts() {
			first := newLines(l.text)
			return l.start == line && (len(first) == 0 || first[0] != text)
		}
	}
	return false
}

func hasWord(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) })
}

// replaceLines builds the file in which the edits, checked and in the order of the file, have taken effect.
func replaceLines(d Document, list []lineEdit) []byte {
	size := len(d.Body) + len(BOM)
	for _, l := range list {
		size += len(l.text) + 2*strings.Count(l.text, "\n") + 4
	}
	out := make([]byte, 0, size)
	head := 0
	if d.HasBOM {
		out = append(out, BOM...)
		head = len(BOM)
	}
	at := 0
	for _, l := range list {
		place := len(d.Body)
		if l.start <= len(d.Lines) {
			place = d.Lines[l.start-1].Start
		}
		out = append(out, d.Body[at:place]...)
		at = place
		if l.inserts() {
			out = appendInserted(out, head, d, l)
			continue
		}
		out = appendReplaced(out, d, l)
		at = d.Lines[l.end-1].Next
	}
	return append(out, d.Body[at:]...)
}

// appendReplaced writes the new lines of a range. Each takes the newline of the line that it replaces, the last that of
// the range's last line, also none.
func appendReplaced(out []byte, d Document, l lineEdit) []byte {
	lines := newLines(l.text)
	for i, line := range lines {
		out = append(out, line...)
		if i < len(lines)-1 {
			out = append(out, newlineOf(d, min(l.start-1+i, l.end-1))...)
			continue
		}
		out = append(out, lastEnding(d, l.end, line)...)
	}
	return out
}

// lastEnding gives the ending of line n of d for a new line in its place. A blank line is a line only by its newline, so
// that one gets a newline also where line n had none.
func lastEnding(d Document, n int, line string) string {
	if e := d.Ending(n); e != "" || line != "" {
		return e
	}
	return newlineOf(d, n-1)
}

// appendInserted writes inserted lines. Behind a last line without a newline they close that line, and the last of them
// has none in its turn. The first head bytes of out are no line's.
func appendInserted(out []byte, head int, d Document, l lineEdit) []byte {
	before := l.start - 2 // the line before, from 0: there is no line to replace
	newline := newlineOf(d, before)
	open := l.start > len(d.Lines) && len(d.Lines) > 0 && !d.FinalNewline()
	lines := newLines(l.text)
	if open && len(lines) > 0 && !endsLine(out[head:]) {
		out = append(out, newline...)
	}
	for i, line := range lines {
		out = append(out, line...)
		if !open || i < len(lines)-1 || line == "" {
			out = append(out, newline...)
		}
	}
	return out
}
