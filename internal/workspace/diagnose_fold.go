package workspace

import (
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// folding is a way of taking two texts as equal that differ in something a reader overlooks.
type folding uint8

const (
	foldTrailing folding = 1 << iota // blanks at the end of lines
	foldIndent                       // blanks at the beginning of lines
	foldChars                        // quotes, dashes, odd blanks, invisible and composed characters
	foldSpace                        // all blanks and newlines: how many, and which
	foldCase                         // upper and lower case
)

// segmentBytes bounds one character with the marks that are composed with it.
const segmentBytes = 32

// fold gives text folded. Time and space are linear in text.
func (f folding) fold(text []byte) []byte {
	folded := make([]byte, 0, len(text)+16)
	n := 0
	for at := 0; at < len(text); at += n {
		folded, n = f.appendUnit(folded, text, at)
	}
	return folded
}

// unfold gives the stretch of text that folds to what is folded from offset from up to offset to.
func (f folding) unfold(text []byte, from, to int) (start, end int) {
	var unit []byte
	at, folded, n := 0, 0, 0
	for ; at < len(text); at += n {
		unit, n = f.appendUnit(unit[:0], text, at)
		if folded+len(unit) > from {
			break
		}
		folded += len(unit)
	}
	start = at
	for ; at < len(text) && folded < to; at += n {
		unit, n = f.appendUnit(unit[:0], text, at)
		folded += len(unit)
	}
	return start, at
}

// appendUnit folds what begins at offset at of text, and says how many bytes of text that is. What is folded away
// appends nothing.
func (f folding) appendUnit(to, text []byte, at int) ([]byte, int) {
	if n := f.blankRun(text, at); n > 0 {
		return f.appendBlanks(to, text, at, n), n
	}
	c := text[at]
	if c < utf8.RuneSelf && (f&foldChars == 0 || at+1 == len(text) || text[at+1] < utf8.RuneSelf) {
		return append(to, f.lowerASCII(c)), 1
	}
	r, n := utf8.DecodeRune(text[at:])
	if f&foldChars == 0 {
		return utf8.AppendRune(to, f.lower(r)), n
	}
	if r >= firstMark && !norm.NFC.Properties(text[at:]).BoundaryBefore() || standsAlone(text[at:], r, n) {
		return f.appendPlain(to, r), n
	}
	return f.appendSegment(to, text[at:])
}

func (f folding) lowerASCII(c byte) byte {
	if f&foldCase != 0 && 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

func (f folding) lower(r rune) rune {
	if f&foldCase != 0 {
		return unicode.ToLower(r)
	}
	return r
}

// firstMark is the first character that can belong to one before it; all before it are composed already.
const firstMark = '\u0300'

// standsAlone reports whether r, the n bytes at the beginning of text, is composed already and has no marks.
func standsAlone(text []byte, r rune, n int) bool {
	if r >= firstMark && norm.NFC.Properties(text).Decomposition() != nil && norm.NFC.QuickSpan(text[:n]) != n {
		return false
	}
	if n == len(text) || text[n] < utf8.RuneSelf {
		return true
	}
	next, _ := utf8.DecodeRune(text[n:])
	return next < firstMark || norm.NFC.Properties(text[n:]).BoundaryBefore()
}

// appendSegment folds one character and the marks that are composed with it; marks beyond stand for themselves.
func (f folding) appendSegment(to, text []byte) ([]byte, int) {
	part := text[:min(len(text), segmentBytes)]
	for len(part) > 0 && len(part) < len(text) && !utf8.RuneStart(text[len(part)]) {
		part = part[:len(part)-1]
	}
	n := norm.NFC.NextBoundary(part, true)
	if n <= 0 {
		_, n = utf8.DecodeRune(text)
	}
	for _, r := range string(norm.NFC.Bytes(part[:n])) {
		to = f.appendPlain(to, r)
	}
	return to, n
}

// blankRun gives the length of the run of blanks at offset at, 0 where none begins there or blanks are kept as they are.
func (f folding) blankRun(text []byte, at int) int {
	if f&(foldTrailing|foldIndent|foldSpace) == 0 {
		return 0
	}
	end := at
	for end < len(text) {
		n := f.blank(text[end:])
		if n == 0 {
			break
		}
		end += n
	}
	return end - at
}

// blank gives the length of the blank that text begins with, or 0. Newlines are blanks only where all space is one.
func (f folding) blank(text []byte) int {
	switch c := text[0]; {
	case c == ' ' || c == '\t':
		return 1
	case c == '\n' || c == '\r':
		if f&foldSpace != 0 {
			return 1
		}
		return 0
	case c < utf8.RuneSelf || f&foldChars == 0:
		return 0
	}
	r, n := utf8.DecodeRune(text)
	if oddBlank(r) {
		return n
	}
	return 0
}

func (f folding) appendBlanks(to, text []byte, at, n int) []byte {
	atStart := at == 0 || text[at-1] == '\n'
	atEnd := at+n == len(text) || text[at+n] == '\n'
	switch {
	case f&foldSpace != 0:
		if at == 0 || at+n == len(text) {
			return to
		}
		return append(to, ' ')
	case f&foldIndent != 0 && atStart, f&foldTrailing != 0 && atEnd:
		return to
	}
	return append(to, text[at:at+n]...)
}

// appendPlain writes the plain spelling of a character that is easily taken for it, else the character.
func (f folding) appendPlain(to []byte, r rune) []byte {
	if r < utf8.RuneSelf {
		return append(to, f.lowerASCII(byte(r)))
	}
	switch r {
	case '\u2018', '\u2019', '\u201A', '\u201B', '\u2032', '\u02BC', '\u00B4':
		return append(to, '\'')
	case '\u201C', '\u201D', '\u201E', '\u201F', '\u2033', '\u00AB', '\u00BB':
		return append(to, '"')
	case '\u2010', '\u2011', '\u2012', '\u2013', '\u2014', '\u2015', '\u2212':
		return append(to, '-')
	case '\u2026':
		return append(to, "..."...)
	case '\u00AD', '\u200B', '\u200C', '\u200D', '\u2060', '\uFEFF', '\u200E', '\u200F':
		return to
	}
	if oddBlank(r) {
		return append(to, ' ')
	}
	if '\uFF01' <= r && r <= '\uFF5E' { // the wide forms of ASCII
		return append(to, f.lowerASCII(byte(r-0xFEE0)))
	}
	return utf8.AppendRune(to, f.lower(r))
}

// oddBlank reports whether r is a blank beside space and tab.
func oddBlank(r rune) bool {
	switch r {
	case '\u00A0', '\u1680', '\u202F', '\u205F', '\u3000':
		return true
	}
	return '\u2000' <= r && r <= '\u200A'
}
