package workspace

import "bytes"

// textBody gives a text file's bytes without the byte order mark.
func textBody(content []byte) []byte { return bytes.TrimPrefix(content, []byte(BOM)) }

// lineAt gives the line that begins at byte at, which must be below len(body): the same line as Split's. Reading and
// searching walk lines with it, because a document of all lines costs many times a large file of short ones.
func lineAt(body []byte, at int) Line {
	n := bytes.IndexByte(body[at:], '\n')
	if n < 0 {
		return Line{at, len(body), len(body)}
	}
	end, next := at+n, at+n+1
	if end > at && body[end-1] == '\r' {
		end--
	}
	return Line{at, end, next}
}

// lineBefore gives the line that ends where the one at byte at, which must not be 0, begins.
func lineBefore(body []byte, at int) Line {
	return lineAt(body, bytes.LastIndexByte(body[:at-1], '\n')+1)
}

// countLines is the number of lines that Split would give.
func countLines(body []byte) int {
	n := bytes.Count(body, []byte{'\n'})
	if len(body) > 0 && body[len(body)-1] != '\n' {
		n++
	}
	return n
}

// newlineKind is what Document.Newlines says.
func newlineKind(body []byte) string {
	all, crlf := bytes.Count(body, []byte{'\n'}), bytes.Count(body, []byte("\r\n"))
	switch {
	case all == 0:
		return "none"
	case crlf == 0:
		return "lf"
	case crlf == all:
		return "crlf"
	}
	return "mixed"
}

// lineOffset gives the byte at which line n, counted from 1, begins; the body must have it.
func lineOffset(body []byte, n int) int {
	at := 0
	for ; n > 1; n-- {
		at += bytes.IndexByte(body[at:], '\n') + 1
	}
	return at
}
