package workspace

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"treeline/internal/call"
)

// What edit_file tells a model when it changes nothing. Every text has what the next call needs: what is there now, on
// which lines, and how to ask instead.

const (
	exampleText = `{"find": "old words", "replace": "new words"}`
	exampleAll  = `{"find": "old", "replace": "new", "all": true, "expectedMatches": 3}`
	exampleLine = `{"startLine": 4, "endLine": 6, "anchor": "the text of line 4", "text": "new lines"}`

	// tellFailures is how many failing edits of one call are explained, tellLines how many line numbers are listed,
	// tellChars how many characters of a line are shown.
	tellFailures = 5
	tellLines    = 20
	tellChars    = 300
)

func number(n int) string { return strconv.Itoa(n) }

func plural(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return number(n) + " " + one + "s"
}

func refuseNoEdits() *call.Refusal {
	return call.Refuse(call.InvalidArguments, "edits: expected at least one edit, got none. Example: %s", exampleText)
}

func refuseField(edit int, field, want, got, example string) *call.Refusal {
	return call.Refuse(call.InvalidArguments, "edits[%d].%s: expected %s, got %s. Example: %s", edit, field, want, got, example)
}

func refuseMixedKinds(edits []Edit, at int) *call.Refusal {
	what := fmt.Sprintf("edit 1 is by %s and edit %d by %s", kindName(edits[0]), at+1, kindName(edits[at]))
	if edits[at].byText() && edits[at].byLine() {
		what = fmt.Sprintf("edit %d has fields of both", at+1)
	}
	return call.Refuse(call.MixedEditKinds, "Nothing was changed: every edit of one call is by text (find, replace) or every one "+
		"is by line (startLine, endLine, anchor, text); %s. Use one of the two for all, or send two calls: first the line edits, "+
		"then the text edits, whose find does not depend on line numbers.", what)
}

func kindName(e Edit) string {
	if e.byText() {
		return "text"
	}
	return "line"
}

func refuseEmptyFind(edit int) *call.Refusal {
	return call.Refuse(call.EmptyFind, `edits[%d].find is empty and would match everywhere. Give the text to replace; to add `+
		`lines, insert by line: {"startLine": 4, "endLine": 3, "anchor": "the text of line 4", "text": "new lines"}.`, edit)
}

func refuseNotText(bad byte, at int) *call.Refusal {
	why := fmt.Sprintf("the byte at offset %d (from 0) is 0x%02X, which is not valid UTF-8 there", at, bad)
	if bad == 0 {
		why = fmt.Sprintf("the byte at offset %d (from 0) is U+0000", at)
	}
	return call.Refuse(call.NotText, "The file is not text: %s. edit_file changes only text; change this file with run_code.", why)
}

func refuseEditNoChange(before []byte) *call.Refusal {
	more := ""
	if bytes.Contains(before, []byte("\r\n")) {
		more = ` The file has lines that end in "\r\n"; new lines take the newline of those they replace, so edit_file does ` +
			`not change newlines. run_code does.`
	}
	return call.Refuse(call.NoChange, "The file would have the same bytes as before, so nothing was changed: what the edits ask "+
		"for is there already.%s", more)
}

func refuseNotUnique(x *excerpts, find []byte) *call.Refusal {
	at, count := occurrences(x.norm, find, tellLines)
	return call.Refuse(call.TextNotUnique, "find is there %d times (overlapping places counted), on lines %s; it must be there "+
		"once. Take in more of the text around the place that you mean, or give all: true to replace every one.%s",
		count, x.lineList(at, count), x.show(x.lineNumbers(at), 1))
}

func refuseOtherCount(x *excerpts, want, count int, found []span) *call.Refusal {
	var at []int
	for _, s := range found {
		at = append(at, s.start)
	}
	return call.Refuse(call.TextNotUnique, "find is there %s, on lines %s, and expectedMatches is %d. If all of them are meant, "+
		"give expectedMatches %d or leave it out.%s", times(count), x.lineList(at, count), want, count,
		x.show(x.lineNumbers(at), 1))
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return number(n) + " times"
}

func refuseTextOverlap(x *excerpts, a, b span) *call.Refusal {
	return call.Refuse(call.RangesOverlap, "edits %d and %d replace the same text: they meet on line %d. Reading the file again "+
		"does not cure this. Make one edit of the two, or choose excerpts that share nothing.%s",
		min(a.edit, b.edit)+1, max(a.edit, b.edit)+1, x.line(b.start)+1, x.show([]int{x.line(b.start) + 1}, 1))
}

func (l lineEdit) String() string { return fmt.Sprintf("edit %d (%s)", l.edit+1, l.place()) }

func (l lineEdit) place() string {
	switch {
	case l.inserts():
		return fmt.Sprintf("insert before line %d", l.start)
	case l.start == l.end:
		return fmt.Sprintf("line %d", l.start)
	}
	return fmt.Sprintf("lines %d to %d", l.start, l.end)
}

func refuseLineOverlap(a, b lineEdit) *call.Refusal {
	return call.Refuse(call.RangesOverlap, "Nothing was changed: the ranges of %s and %s overlap. All line numbers mean the file as it was before the "+
		"call, so reading it again does not cure this. Make one edit of the two; ranges that only touch are fine.", a, b)
}

// lineNumbers gives the lines, from 1, of offsets in norm, each once.
func (x *excerpts) lineNumbers(at []int) []int {
	var lines []int
	for _, p := range at {
		lines = append(lines, x.line(p)+1)
	}
	return slices.Compact(lines)
}

// lineList lists the lines of the first few of count places.
func (x *excerpts) lineList(at []int, count int) string {
	return numberList(x.lineNumbers(at), count-len(at))
}

// numberList lists numbers and says how many more there are.
func numberList(numbers []int, more int) string {
	var b strings.Builder
	for i, n := range numbers {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(number(n))
	}
	if more > 0 {
		fmt.Fprintf(&b, " and %d more", more)
	}
	return b.String()
}

// show prints runs of lines as a read does, each on a line of its own after a newline: from every one of the first few
// given lines, so many.
func (x *excerpts) show(lines []int, run int) string {
	var b strings.Builder
	last := 0
	for _, from := range lines[:min(len(lines), tellFailures)] {
		for n := max(from, last+1); n < from+run && n <= len(x.doc.Lines); n++ {
			fmt.Fprintf(&b, "\n%d\t%s", n, clip(string(x.doc.Text(n)), 0))
			last = n
		}
	}
	return b.String()
}

// clip shows at most tellChars characters of a line, from a little before the byte at offset at.
func clip(line string, at int) string { return clipTo(line, at, tellChars) }

func clipTo(line string, at, most int) string {
	if len(line) <= most {
		return line
	}
	from := runeStart(line, max(0, min(at, len(line))-most/4))
	to := from
	for n := 0; n < most && to < len(line); n++ {
		to = runeEnd(line, to)
	}
	before, after := "", ""
	if from > 0 {
		before = fmt.Sprintf("[%d characters before] ", countRunes(line[:from]))
	}
	if to < len(line) {
		after = fmt.Sprintf(" [%d characters more]", countRunes(line[to:]))
	}
	return before + line[from:to] + after
}
