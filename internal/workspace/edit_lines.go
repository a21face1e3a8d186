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

func lineEditOf(i int, e Edit) lineEdit {
	return lineEdit{*e.StartLine, *e.EndLine, i, *e.Anchor, *e.Text}
}

// lineEdits gives checked edits in the order of the file: at one place inserts as given, then what replaces it.
func lineEdits(edits []Edit) []lineEdit {
	list := make([]lineEdit, len(edits))
	for i, e := range edits {
		list[i] = lineEditOf(i, e)
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
	wrong := checkRanges(d, edits)
	if guard.whole != nil && wrong.none() {
		for _, l := range list {
			if l.start == 1 && l.end == len(d.Lines) && !l.inserts() {
				return nil, guard.whole()
			}
		}
	}
	meant := checkAnchors(d, edits, &wrong)
	checkRepeats(d, meant, &wrong)
	if r := wrong.refusal(); r != nil {
		return nil, r
	}
	return replaceLines(d, list), nil
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
