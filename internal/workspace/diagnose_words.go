package workspace

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"treeline/internal/call"
)

// tellPairs is how many differing characters are named, tellRunes how many code points of one.
const (
	tellPairs = 4
	tellRunes = 4
	tellRun   = 8 // lines shown of a nearest place
)

// refuseNotFound says that an excerpt is not in the file, what may have been meant, and what is there.
func refuseNotFound(x *excerpts, e Edit) *call.Refusal {
	find := lf(*e.Find)
	var b strings.Builder
	b.WriteString("find is not in the file.")
	if len(x.norm) == 0 {
		b.WriteString(` The file is empty; insert with {"startLine": 1, "endLine": 0, "anchor": "", "text": "new lines"}.`)
		return call.Refuse(call.TextNotFound, "%s", b.String())
	}
	start, focus, lines := -1, 0, strings.Count(find, "\n")+1
	thorough := x.thorough(find)
	if m, ok := x.meantBy(find, thorough); ok {
		there := string(x.norm[m.place.start:m.place.end])
		head, _ := shared(find, there)
		start, focus = m.place.start, m.place.start+head
		lines = strings.Count(strings.TrimSuffix(there, "\n"), "\n") + 1
		at := x.line(start) + 1
		fmt.Fprintf(&b, "%s%s The place meant seems to %s line %d.", x.sayFirstLines(find, at), m.words, beAt(lines), at)
	} else {
		b.WriteString(x.sayFirstLine(find))
		if c, ok := x.nearestTo(find, thorough); ok {
			start, focus = c.from, c.to
			lines = max(lines, x.line(max(c.end-1, 0))-x.line(start)+1)
			b.WriteString(x.sayDifference(c))
		}
	}
	b.WriteString(x.sayAlready(lf(*e.Replace)))
	if start < 0 {
		b.WriteString(" Find the place with search_files or read_file, and copy the text from there.")
	} else {
		b.WriteString(" The file has now, after number<TAB>:" + x.showNear(x.line(start)+1, lines, focus))
	}
	return call.Refuse(call.TextNotFound, "%s", b.String())
}

// sayFirstLine tells on which lines the first line of an excerpt of several lines is, or some other line of it.
func (x *excerpts) sayFirstLine(find string) string {
	lines := strings.Split(find, "\n")
	if len(lines) == 1 {
		return ""
	}
	tried := 0
	for i, text := range lines {
		if strings.TrimSpace(text) == "" {
			continue
		}
		at, more := x.linesOf(text, i < len(lines)-1)
		switch {
		case len(at) > 0 && tried == 0:
			return fmt.Sprintf(" Its first line%s is on %s %s.", textOnly(i), word(len(at)+more, "line"), numberList(at, more))
		case len(at) > 0 && hasWord(text):
			return fmt.Sprintf(" Its first line is nowhere in the file; its line %d is on %s %s.", i+1, word(len(at)+more, "line"),
				numberList(at, more))
		}
		if tried++; tried == tellRun {
			break
		}
	}
	if tried == 0 { // find is blank
		return ""
	}
	return " Its first line is nowhere in the file."
}

// sayFirstLines tells on which lines the first line of an excerpt is besides the one that is meant, from 1.
func (x *excerpts) sayFirstLines(find string, meant int) string {
	first, _, several := strings.Cut(find, "\n")
	if !several || strings.TrimSpace(first) == "" {
		return ""
	}
	at, more := x.linesOf(first, true)
	if more == 0 && (len(at) == 0 || len(at) == 1 && at[0] == meant) {
		return ""
	}
	return fmt.Sprintf(" Its first line is on %s %s.", word(len(at)+more, "line"), numberList(at, more))
}

func beAt(lines int) string {
	if lines == 1 {
		return "be"
	}
	return "begin on"
}

func textOnly(skipped int) string {
	if skipped > 0 {
		return " that is not blank"
	}
	return ""
}

func word(n int, one string) string {
	if n == 1 {
		return one
	}
	return one + "s"
}

// sayDifference tells how far the nearest place agrees with find and what is there instead.
func (x *excerpts) sayDifference(c candidate) string {
	if c.backward {
		return x.sayBefore(c)
	}
	has := "the file ends"
	if c.to < len(x.norm) {
		has = "the file has " + describe(firstRune(string(x.norm[c.to:min(len(x.norm), c.to+utf8.UTFMax)])))
	}
	aside := ""
	if c.loosely {
		aside = ", blanks at both ends of lines aside,"
	}
	line := x.line(c.to)
	return fmt.Sprintf(" The nearest place begins on line %d and agrees%s up to line %d, column %d: there %s where find has %s.",
		x.line(c.from)+1, aside, line+1, countRunes(string(x.norm[x.start(line):c.to]))+1, has, describe(firstRune(c.want)))
}

// sayBefore tells from where on a place agrees with the end of find and what is there before.
func (x *excerpts) sayBefore(c candidate) string {
	has := "the file begins"
	if c.to > 0 {
		has = "the file has " + describe(lastRune(string(x.norm[max(0, c.to-utf8.UTFMax):c.to])))
	}
	line := x.line(c.to)
	return fmt.Sprintf(" The nearest place agrees with the end of find from line %d, column %d on: before that %s where find has %s.",
		line+1, countRunes(string(x.norm[x.start(line):c.to]))+1, has, describe(lastRune(c.want)))
}

func (x *excerpts) sayAlready(replace string) string {
	text := strings.Trim(replace, "\n")
	if !hasWord(text) {
		return ""
	}
	at, ok := x.exact(text)
	if !ok {
		return ""
	}
	line := x.line(at.start)
	if utf8.RuneCountInString(text) < 2 && string(x.doc.Text(line+1)) != text {
		return ""
	}
	return fmt.Sprintf(" The new text is already there, on line %d: the edit may have been made before.", line+1)
}

func (f folding) equal(a, b string) bool {
	return bytes.Equal(f.fold([]byte(a)), f.fold([]byte(b)))
}

// sayOnly names the cause and what differs: there is in the file and begins on line.
func (x *excerpts) sayOnly(what, words string, f folding, given, there string, line int) string {
	var told []string
	if f&^foldIndent == foldTrailing {
		told = trailing(what, given, there, line)
		given, there = trimLines(given), trimLines(there)
		f &^= foldTrailing
	}
	if f != 0 {
		told = append(differing(what, f, given, there), told...)
	}
	if len(told) == 0 {
		return fmt.Sprintf(" It differs only in %s.", words)
	}
	return fmt.Sprintf(" It differs only in %s: %s.", words, strings.Join(told, "; "))
}

// describe names characters by their code points, and blanks by how many they are.
func describe(s string) string {
	if s == "" {
		return "nothing"
	}
	r, _ := utf8.DecodeRuneInString(s)
	if name := blankName(r); name != "" && strings.Trim(s, string(r)) == "" {
		return plural(countRunes(s), name)
	}
	var parts []string
	for _, r := range s {
		if len(parts) == tellRunes {
			parts = append(parts, "...")
			break
		}
		if name := blankName(r); name != "" || !unicode.IsPrint(r) || unicode.Is(unicode.M, r) {
			parts = append(parts, strings.TrimSpace(fmt.Sprintf("%s U+%04X", name, r)))
			continue
		}
		parts = append(parts, fmt.Sprintf("%c (U+%04X)", r, r))
	}
	return strings.Join(parts, " + ")
}

func blankName(r rune) string {
	switch r {
	case ' ':
		return "space"
	case '\t':
		return "tab"
	case '\n':
		return "newline"
	case '\r':
		return "carriage return"
	}
	return ""
}

// showNear prints the lines of a nearest place; long lines round the offset in norm at which something differs.
func (x *excerpts) showNear(from, lines, focus int) string {
	var b strings.Builder
	at := x.line(focus) + 1
	if at-from >= tellRun { // what differs is far down: show the lines round it
		from = at - tellRun/2
	}
	for n := from; n < from+min(lines, tellRun) && n <= len(x.doc.Lines); n++ {
		offset := 0
		if n == at {
			offset = focus - x.start(n-1)
		}
		fmt.Fprintf(&b, "\n%d\t%s", n, clip(string(x.doc.Text(n)), offset))
	}
	return b.String()
}

func firstRune(s string) string {
	_, n := utf8.DecodeRuneInString(s)
	return s[:n]
}

func lastRune(s string) string {
	_, n := utf8.DecodeLastRuneInString(s)
	return s[len(s)-n:]
}

func countRunes(s string) int { return utf8.RuneCountInString(s) }

// runeStart moves an offset back to where a character begins; runeEnd gives where the one at an offset ends.
func runeStart(s string, at int) int {
	for at > 0 && at < len(s) && !utf8.RuneStart(s[at]) {
		at--
	}
	return at
}

func runeEnd(s string, at int) int {
	_, n := utf8.DecodeRuneInString(s[at:])
	return at + n
}
