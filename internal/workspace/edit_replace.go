package workspace

import (
	"bytes"
	"strings"

	"treeline/internal/call"
)

// replaceSpans builds the file in which every span of norm is replaced by its edit's text.
func replaceSpans(x *excerpts, spans []span, edits []Edit, guard editGuard) ([]byte, *call.Refusal) {
	texts := make([]string, len(edits))
	for i, e := range edits {
		texts[i] = lf(*e.Replace)
	}
	size := int64(len(x.norm))
	for _, s := range spans {
		size += int64(len(texts[s.edit]) - (s.end - s.start))
	}
	if r := guard.fits(size); r != nil {
		return nil, r
	}
	out := make([]byte, 0, size+int64(len(x.doc.Body)-len(x.norm))+int64(len(BOM)))
	if x.doc.HasBOM {
		out = append(out, BOM...)
	}
	at := 0
	for _, s := range spans {
		out = append(out, x.doc.Body[at:x.body(s.start)]...)
		out = x.appendReplacement(out, s, texts[s.edit])
		at = x.body(s.end)
	}
	return append(out, x.doc.Body[at:]...), nil
}

// appendReplacement writes text, whose newlines are "\n", in the newlines of the lines that it replaces: one by one from
// the beginning, but what text keeps of the end keeps its own. New lines beyond those take the newline of the line in
// which they stand.
func (x *excerpts) appendReplacement(out []byte, s span, text string) []byte {
	if x.starts == nil || strings.IndexByte(text, '\n') < 0 {
		return append(out, text...)
	}
	old := string(x.norm[s.start:s.end])
	_, tail := shared(old, text)
	middle := s.start + len(old) - tail // in norm, where what is kept of the end begins
	end := strings.Count(old, "\n") - strings.Count(old[len(old)-tail:], "\n")
	added := strings.Count(text[:len(text)-tail], "\n") // those after so many are of the tail
	first := x.line(s.start)
	for n := 0; ; n++ {
		cut := strings.IndexByte(text, '\n')
		if cut < 0 {
			return append(out, text...)
		}
		out = append(out, text[:cut]...)
		text = text[cut+1:]
		switch {
		case n >= added:
			out = append(out, x.doc.Ending(first+end+n-added+1)...)
		case n < end:
			out = append(out, x.doc.Ending(first+n+1)...)
		default:
			out = append(out, newlineOf(x.doc, x.line(min(middle, s.end-1)))...)
		}
	}
}

// shared gives how many bytes two strings have in common at their beginning, and of the rest at their end.
func shared(a, b string) (head, tail int) {
	n := min(len(a), len(b))
	for head < n && a[head] == b[head] {
		head++
	}
	for tail < n-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	return head, tail
}

// newlineOf gives the newline that a new line takes in place of line i, counted from 0: that line's, else that of the
// line before, else the file's first, else "\n".
func newlineOf(d Document, i int) string {
	for _, at := range []int{i, i - 1, 0} {
		if at < 0 || at >= len(d.Lines) {
			continue
		}
		if e := d.Ending(at + 1); e != "" {
			return e
		}
	}
	return "\n"
}

// newLines cuts the text of a line edit into lines. Its closing newline, if any, is left out: "" has no line, "\n" one.
func newLines(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(lf(text), "\n"), "\n")
}

// endsLine reports whether out is at the beginning of a line.
func endsLine(out []byte) bool { return len(out) == 0 || bytes.HasSuffix(out, []byte{'\n'}) }
