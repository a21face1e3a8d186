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

// segmentBytes bounds one character with its marks, so that no run of marks is gone over twice.
const segmentBytes = 128

// fold gives text folded. Time and space are linear in text.
func (f folding) fold(text []byte) []byte {
	folded := make([]byte, 0, len(text)+16)
	for at := 0; at < len(text); {
		out, n := f.unit(text, at)
		folded = append(folded, out...)
		at += n
	}
	return folded
}

// unfold gives the stretch of text that folds to what is folded from offset from up to offset to.
func (f folding) unfold(text []byte, from, to int) (start, end int) {
	at, folded := 0, 0
	for at < len(text) {
		out, n := f.unit(text, at)
		if folded+len(out) > from {
			break
		}
		folded += len(out)
		at += n
	}
	start = at
	for at < len(text) && folded < to {
		out, n := f.unit(text, at)
		folded += len(out)
		at += n
	}
	return start, at
}

// asciiUnits has each ASCII character as a text, so that units need no memory of their own.
var asciiUnits = func() (units [utf8.RuneSelf][1]byte) {
	for i := range units {
		units[i][0] = byte(i)
	}
	return units
}()

// unit folds what begins at offset at, and says how many bytes that is. What is folded away gives nothing.
func (f folding) unit(text []byte, at int) (out []byte, n int) {
	if n := f.blankRun(text, at); n > 0 {
		return f.foldBlanks(text, at, n), n
	}
	c := text[at]
	if c < utf8.RuneSelf && (f&foldChars == 0 || at+1 == len(text) || text[at+1] < utf8.RuneSelf) {
		if f&foldCase != 0 && 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		return asciiUnits[c][:], 1
	}
	if f&foldChars == 0 {
		r, n := utf8.DecodeRune(text[at:])
		if f&foldCase != 0 {
			r = unicode.ToLower(r)
		}
		return utf8.AppendRune(nil, r), n
	}
	return f.foldSegment(text[at:])
}

// foldSegment folds one character and its marks.
func (f folding) foldSegment(text []byte) (out []byte, n int) {
	part := text[:min(len(text), segmentBytes)]
	for len(part) > 0 && len(part) < len(text) && !utf8.RuneStart(text[len(part)]) {
		part = part[:len(part)-1]
	}
	n = norm.NFC.NextBoundary(part, true)
	if n <= 0 {
		_, n = utf8.DecodeRune(text)
	}
	for _, r := range string(norm.NFC.Bytes(part[:n])) {
		if f&foldCase != 0 {
			r = unicode.ToLower(r)
		}
		out = append(out, plain(r)...)
	}
	return out, n
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
	if plain(r) == " " {
		return n
	}
	return 0
}

func (f folding) foldBlanks(text []byte, at, n int) []byte {
	atStart := at == 0 || text[at-1] == '\n'
	atEnd := at+n == len(text) || text[at+n] == '\n'
	switch {
	case f&foldSpace != 0:
		if at == 0 || at+n == len(text) {
			return nil
		}
		return asciiUnits[' '][:]
	case f&foldIndent != 0 && atStart, f&foldTrailing != 0 && atEnd:
		return nil
	}
	return text[at : at+n]
}

// plain gives the plain spelling of a character that is easily taken for it.
func plain(r rune) string {
	switch r {
	case '\u2018', '\u2019', '\u201A', '\u201B', '\u2032', '\u02BC', '\u00B4':
		return "'"
	case '\u201C', '\u201D', '\u201E', '\u201F', '\u2033', '\u00AB', '\u00BB':
		return `"`
	case '\u2010', '\u2011', '\u2012', '\u2013', '\u2014', '\u2015', '\u2212':
		return "-"
	case '\u2026':
		return "..."
	case '\u00A0', '\u1680', '\u202F', '\u205F', '\u3000':
		return " "
	case '\u00AD', '\u200B', '\u200C', '\u200D', '\u2060', '\uFEFF', '\u200E', '\u200F':
		return ""
	}
	if '\u2000' <= r && r <= '\u200A' {
		return " "
	}
	if '\uFF01' <= r && r <= '\uFF5E' { // the wide forms of ASCII
		return string(r - 0xFEE0)
	}
	return string(r)
}
