package workspace

import (
	"bytes"
	"html"
	"strings"
	"unicode/utf8"
)

// diagnosisBytes is how much of a file is searched for what an excerpt may have meant, thoroughBytes how long a file may
// be for that to be done for every excerpt of a call, excerptBytes how long an excerpt; placeTries is how many places are looked at where the fit must
// begin or end with a line, costlyBytes how many bytes beyond ASCII are compared by what they look like.
const (
	diagnosisBytes = 8 << 20
	thoroughBytes  = 512 << 10
	excerptBytes   = 256 << 10
	placeTries     = 1000
	costlyBytes    = 1 << 20
)

// nearness keeps folded copies of a file for the excerpts of one call that are not in it.
type nearness struct {
	folded map[folding][]byte
	// asked is how many excerpts were looked for.
	asked int
	// costly is how much of the window is folded where characters are; 0 is not known yet.
	costly int
}

// thorough reports whether there is time to guess at one more excerpt: in a long file only at the first, and at none that
// is long itself.
func (x *excerpts) thorough(find string) bool {
	x.near.asked++
	return len(find) <= excerptBytes && (x.near.asked == 1 || len(x.norm) <= thoroughBytes)
}

// cause is a way in which an excerpt can miss its place, and how it is put to a model.
type cause struct {
	folding folding
	words   string
}

// causes runs from the narrowest to the widest.
func causes() []cause {
	return []cause{
		{foldTrailing, "trailing blanks"},
		{foldIndent, "indentation"},
		{foldIndent | foldTrailing, "indentation and trailing blanks"},
		{foldChars, "quotes, or characters that look the same or are composed otherwise"},
		{foldCase, "upper and lower case"},
		{foldSpace, "blanks and line breaks"},
		{foldChars | foldSpace | foldCase, "blanks, case, and characters that look the same"},
	}
}

// window is the part of the file that is searched.
func (x *excerpts) window() []byte { return x.norm[:min(len(x.norm), diagnosisBytes)] }

// windowOf is the part that is folded: less of the window where characters are costly to fold.
func (x *excerpts) windowOf(f folding) []byte {
	window := x.window()
	if f&foldChars == 0 {
		return window
	}
	if x.near.costly == 0 {
		x.near.costly = costlyEnd(window)
	}
	return window[:x.near.costly]
}

// costlyEnd gives where costlyBytes bytes of text beyond ASCII have come, or else its end.
func costlyEnd(text []byte) int {
	n := 0
	for i, c := range text {
		if c < utf8.RuneSelf {
			continue
		}
		if n++; n > costlyBytes && utf8.RuneStart(c) {
			return i
		}
	}
	return len(text)
}

func (x *excerpts) foldedBy(f folding) []byte {
	b, ok := x.near.folded[f]
	if !ok {
		b = f.fold(x.windowOf(f))
		x.near.folded[f] = b
	}
	return b
}

// place is where in norm an excerpt nearly is.
type place struct{ start, end int }

// findFolded finds the first place that equals text when both are folded; with whole, only a whole line.
func (x *excerpts) findFolded(text string, f folding, whole bool) (place, bool) {
	folded := f.fold([]byte(text))
	if len(folded) == 0 {
		return place{}, false
	}
	body := x.foldedBy(f)
	fromStart := whole || f&foldIndent != 0 && f.blank([]byte(text)) > 0
	toEnd := whole || f&foldTrailing != 0 && (strings.HasSuffix(text, " ") || strings.HasSuffix(text, "\t"))
	for at, try := 0, 0; try < placeTries; try++ {
		n := bytes.Index(body[at:], folded)
		if n < 0 {
			break
		}
		from, to := at+n, at+n+len(folded)
		if (!fromStart || from == 0 || body[from-1] == '\n') && (!toEnd || to == len(body) || body[to] == '\n') {
			p := x.unfolded(f, from, to, fromStart, toEnd)
			return p, f.equal(text, string(x.norm[p.start:p.end])) // not so where it is only a part of what folds as one
		}
		at = from + 1
	}
	return place{}, false
}

// unfolded gives the place in norm of a stretch of the folded file, with the blanks folded away round it that count.
func (x *excerpts) unfolded(f folding, from, to int, fromStart, toEnd bool) place {
	start, end := f.unfold(x.windowOf(f), from, to)
	if fromStart {
		start = bytes.LastIndexByte(x.norm[:start], '\n') + 1
	}
	if toEnd {
		if n := bytes.IndexByte(x.norm[end:], '\n'); n >= 0 {
			end += n
		} else {
			end = len(x.norm)
		}
	}
	return place{start, end}
}

// nearMiss is what an excerpt that is not in a file may have meant.
type nearMiss struct {
	place place
	words string
}

// meantBy finds out why find is not in the file: thoroughly, or by what is quickly seen.
func (x *excerpts) meantBy(find string, thorough bool) (nearMiss, bool) {
	if m, ok := x.meantWithout(find, thorough); ok || !thorough {
		return m, ok
	}
	for _, c := range causes() {
		if p, ok := x.findFolded(find, c.folding, false); ok {
			return nearMiss{p, x.sayOnly("find", c.words, c.folding, find, string(x.norm[p.start:p.end]), x.line(p.start)+1)}, true
		}
	}
	return nearMiss{}, false
}

// meantWithout tries what find becomes without something that does not belong in it.
func (x *excerpts) meantWithout(find string, thorough bool) (nearMiss, bool) {
	if stripped, ok := withoutNumbers(find); ok {
		words := " find has the number<TAB> prefixes that a read puts before each line; they are not in the file. Leave the numbers out."
		if p, ok := x.exact(stripped); ok {
			return nearMiss{p, words}, true
		}
		if m, ok := x.meantBy(stripped, thorough); ok {
			return nearMiss{m.place, words + m.words}, true
		}
	}
	for _, w := range []struct{ text, words string }{
		{unescaped(find), ` find is escaped once too often: it has a backslash and a letter or quote where the file has the character.`},
		{html.UnescapeString(find), ` find has HTML entities where the file has the characters themselves.`},
		{strings.Trim(find, "\n"), ` find differs only in newlines at its beginning or end.`},
	} {
		if w.text == find || w.text == "" {
			continue
		}
		if p, ok := x.exact(w.text); ok {
			return nearMiss{p, w.words}, true
		}
	}
	return nearMiss{}, false
}

func (x *excerpts) exact(text string) (place, bool) {
	if text == "" {
		return place{}, false
	}
	at := bytes.Index(x.window(), []byte(text))
	return place{at, at + len(text)}, at >= 0
}

// withoutNumbers takes the prefixes of a read off every line. Only the first line may be without: an excerpt can begin
// inside a line.
func withoutNumbers(text string) (string, bool) {
	lines := strings.Split(text, "\n")
	found := false
	for i, line := range lines {
		rest := strings.TrimLeft(line, " ")
		digits := len(rest) - len(strings.TrimLeft(rest, "0123456789"))
		switch {
		case digits > 0 && strings.HasPrefix(rest[digits:], "\t"):
			lines[i], found = rest[digits+1:], true
		case i > 0 && (line != "" || i < len(lines)-1):
			return "", false
		}
	}
	return strings.Join(lines, "\n"), found
}

func unescaped(s string) string {
	return strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\t`, "\t", `\r`, "\r", `\"`, `"`, `\'`, "'").Replace(s)
}

// linesOf finds the lines on which text is, as a whole line's end where a newline is to follow it. It keeps the first few.
func (x *excerpts) linesOf(text string, closed bool) (lines []int, more int) {
	if !bytes.Contains(x.window(), []byte(text)) {
		return nil, 0
	}
	if closed {
		at, count := occurrences(x.window(), []byte(text+"\n"), tellLines)
		if bytes.HasSuffix(x.norm, []byte(text)) && len(x.window()) == len(x.norm) {
			at, count = append(at, len(x.norm)-len(text)), count+1
		}
		if count > 0 {
			return x.lineNumbers(at), count - len(at)
		}
	}
	at, count := occurrences(x.window(), []byte(text), tellLines)
	return x.lineNumbers(at), count - len(at)
}
