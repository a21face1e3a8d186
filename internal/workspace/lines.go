// Package workspace holds what a conversation's tree of files means: paths, lines, reading, searching, editing, guards,
// limits and differences. It is pure: bytes and facts in, bytes, facts or a refusal out; no I/O, no context, no clock.
package workspace

import (
	"bytes"
	"unicode/utf8"
)

// BOM is the UTF-8 byte order mark. It belongs to a file, not to its first line.
const BOM = "\xef\xbb\xbf"

// Line is one line of a Document: its text is Body[Start:End] and its ending is Body[End:Next] ("\n", "\r\n" or, for a
// last line without one, nothing). Offsets are bytes.
type Line struct {
	Start, End, Next int
}

// Document is a text file cut into lines by the one splitter that reading, searching, editing and diffing share.
// "\n" and "\r\n" end a line; nothing else does.
type Document struct {
	// HasBOM says that the file begins with a UTF-8 byte order mark, which Body leaves out.
	HasBOM bool
	Body   []byte
	Lines  []Line
}

// FirstBadByte gives the offset, from 0 in the whole file, of the first byte that keeps b from being text (invalid UTF-8
// or U+0000), or -1 if b is text.
func FirstBadByte(b []byte) int {
	nul := bytes.IndexByte(b, 0)
	if utf8.Valid(b) {
		return nul
	}
	for i := 0; i < len(b); {
		if i == nul {
			return i
		}
		if b[i] < utf8.RuneSelf {
			i++
			continue
		}
		r, n := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return -1
}

// IsText reports whether b is valid UTF-8 without U+0000.
func IsText(b []byte) bool { return bytes.IndexByte(b, 0) < 0 && utf8.Valid(b) }

// Split cuts the text b into lines. It does not copy b, which must not be changed afterwards.
func Split(b []byte) Document {
	d := Document{Body: b}
	if bytes.HasPrefix(b, []byte(BOM)) {
		d.HasBOM, d.Body = true, b[len(BOM):]
	}
	d.Lines = make([]Line, 0, bytes.Count(d.Body, []byte{'\n'})+1)
	for at := 0; at < len(d.Body); {
		n := bytes.IndexByte(d.Body[at:], '\n')
		if n < 0 {
			d.Lines = append(d.Lines, Line{at, len(d.Body), len(d.Body)})
			break
		}
		end, next := at+n, at+n+1
		if end > at && d.Body[end-1] == '\r' {
			end--
		}
		d.Lines = append(d.Lines, Line{at, end, next})
		at = next
	}
	return d
}

// Text gives the text of line n, counted from 1, without its ending.
func (d Document) Text(n int) []byte { l := d.Lines[n-1]; return d.Body[l.Start:l.End] }

// Ending gives the newline that closes line n, counted from 1: "\n", "\r\n", or "" for a last line that has none.
func (d Document) Ending(n int) string { l := d.Lines[n-1]; return string(d.Body[l.End:l.Next]) }

// Bytes joins the document again, byte for byte.
func (d Document) Bytes() []byte {
	if !d.HasBOM {
		return d.Body
	}
	return append([]byte(BOM), d.Body...)
}

// Newlines says which endings a document has: "lf", "crlf", "mixed", or "none".
func (d Document) Newlines() string {
	var lf, crlf bool
	for _, l := range d.Lines {
		switch l.Next - l.End {
		case 1:
			lf = true
		case 2:
			crlf = true
		}
	}
	switch {
	case lf && crlf:
		return "mixed"
	case crlf:
		return "crlf"
	case lf:
		return "lf"
	}
	return "none"
}

// FinalNewline reports whether the last line is closed by a newline.
func (d Document) FinalNewline() bool {
	n := len(d.Lines)
	return n > 0 && d.Lines[n-1].Next > d.Lines[n-1].End
}
