package workspace

import (
	"fmt"
	"strings"

	"treeline/internal/call"
)

// anchorBytes is how long an anchor and its line may be to be compared by what is overlooked in them.
const anchorBytes = 64 << 10

// refuseAnchor says how the anchor of an edit, which begins in the file or right behind it, misses its line. It also
// gives the line at which the edit is meant to begin, 0 where that is not known.
func refuseAnchor(x *excerpts, l lineEdit) (r *call.Refusal, start int) {
	n := len(x.doc.Lines)
	if l.end > l.start && l.end <= n && isLine(string(x.doc.Text(l.end)), l.anchor) {
		return call.Refuse(call.AnchorIsLastLine, "anchor is the text of line %d, the last line of the range; it must be that of the "+
			"first, line %d. Reading the file again does not cure this: send the same edit with the text of line %d as anchor:%s",
			l.end, l.start, l.start, x.show([]int{l.start}, 1)), l.start
	}
	if l.start > n {
		return call.Refuse(call.AnchorMoved, `line %d is right behind the last line and has no text: there anchor is "".%s`,
			l.start, x.sayOn("The anchor's text", l.given())), l.start
	}
	if words, near := x.nearlyLine(l.start, l.given()); near {
		start = l.start
		if elsewhere := x.sayOn("The anchor's very text", l.given()); elsewhere != "" {
			words, start = words+elsewhere, 0
		}
		return call.Refuse(call.AnchorMoved, "anchor is not exactly the text of line %d.%s Line %d is:%s", l.start, words, l.start,
			x.show([]int{l.start}, 1)), start
	}
	words, start := x.sayElsewhere(l)
	if words == "" {
		words = x.anchorHint(l.given())
	}
	return call.Refuse(call.AnchorMoved, "anchor is not the text of line %d.%s Line %d is now:%s", l.start, words, l.start,
		x.show([]int{l.start}, 1)), start
}

// given is what the anchor gives as the text of a line: a newline that closes it is none of that.
func (l lineEdit) given() string { return strings.TrimSuffix(lf(l.anchor), "\n") }

// nearlyLine tells what alone parts an anchor from a line, if it is a thing that is overlooked.
func (x *excerpts) nearlyLine(line int, text string) (words string, near bool) {
	here := string(x.doc.Text(line))
	if first, _, several := strings.Cut(text, "\n"); several {
		return oneLine, first == here
	}
	if stripped, ok := withoutNumbers(text); ok && stripped == here {
		return " It has the number<TAB> prefix that a read puts before each line; leave the number out.", true
	}
	if max(len(text), len(here)) > anchorBytes {
		return "", false
	}
	for _, c := range causes() {
		if c.folding.equal(text, here) {
			return x.sayOnly("anchor", c.words, c.folding, text, here, line), true
		}
	}
	return "", false
}

// sayElsewhere tells on which lines the text of an edit's anchor is instead; if it is one, also the range that this comes
// to and where that begins.
func (x *excerpts) sayElsewhere(l lineEdit) (words string, start int) {
	at, more := x.equalLines(l.given())
	switch {
	case len(at) == 0 || l.given() == "":
		return "", 0
	case l.inserts() && at[len(at)-1] == l.start-1 && more == 0:
		return fmt.Sprintf(" The anchor's text is on %s %s instead, before the insert; an insert's anchor is the line behind it.",
			word(len(at), "line"), numberList(at, 0)), l.start
	}
	words = fmt.Sprintf(" The anchor's text is on %s %s instead", word(len(at)+more, "line"), numberList(at, more))
	if moved := l.at(at[0]); len(at) == 1 && !moved.outside(x.doc) {
		words += fmt.Sprintf(`; if the range moved with it: {"startLine": %d, "endLine": %d}`, moved.start, moved.end)
		start = moved.start
	}
	return words + ".", start
}

// sayOn tells on which lines a text is.
func (x *excerpts) sayOn(what, text string) string {
	at, more := x.equalLines(text)
	if len(at) == 0 || text == "" {
		return ""
	}
	return fmt.Sprintf(" %s is on %s %s.", what, word(len(at)+more, "line"), numberList(at, more))
}

const oneLine = " An anchor is the text of one line, and this one has several: give the first of them."

// anchorHint tells what is wrong with an anchor that is the text of no line.
func (x *excerpts) anchorHint(text string) string {
	if first, _, several := strings.Cut(text, "\n"); several {
		return oneLine + x.sayOn("That", first)
	}
	if stripped, ok := withoutNumbers(text); ok {
		words := " It has the number<TAB> prefix that a read puts before each line; leave the number out."
		if on := x.sayOn("The rest", stripped); on != "" {
			return words + on
		}
		return words + x.anchorHint(stripped)
	}
	for _, c := range causes() {
		if c.folding&foldSpace != 0 || len(text) > anchorBytes {
			continue // what joins lines says nothing about one
		}
		if p, ok := x.findFolded(text, c.folding, true); ok {
			n := x.line(p.start) + 1
			return fmt.Sprintf(" The anchor's text is on no line, but line %d differs from it only in %s:%s\n", n, c.words,
				x.show([]int{n}, 1))
		}
	}
	return " The anchor's text is on no line of the file."
}

// equalLines finds the lines whose text is the given one.
func (x *excerpts) equalLines(text string) (lines []int, more int) {
	for i, l := range x.doc.Lines {
		if l.End-l.Start != len(text) || string(x.doc.Body[l.Start:l.End]) != text {
			continue
		}
		if len(lines) < tellLines {
			lines = append(lines, i+1)
		} else {
			more++
		}
	}
	return lines, more
}
