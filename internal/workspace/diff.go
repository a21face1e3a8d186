package workspace

import (
	"bytes"
	"fmt"
	"strings"
)

const (
	// diffContext is how many unchanged lines stand round a change.
	diffContext = 3
	// diffLineChars is how many characters of one line a diff shows.
	diffLineChars = 500
)

// Diff gives the unified diff of the file at path, from before to after; nil is a file that is not there. It has at most
// maxLines lines (at least 4 are given), each of bounded length, and says where it was cut; cut reports that it was, and
// so cannot be applied. Files that are equal give "". Time is bounded and space linear, whatever the files.
func Diff(path string, before, after []byte, maxLines int) (text string, cut bool) {
	if bytes.Equal(before, after) && (before == nil) == (after == nil) {
		return "", false
	}
	w := &diffWriter{most: max(maxLines, 4)}
	w.header(path, before == nil, after == nil)
	if !IsText(before) || !IsText(after) {
		w.line(fmt.Sprintf("The file is not text: %s before, %s after.", sizeOf(before), sizeOf(after)))
		return w.text()
	}
	a, b := Split(before), Split(after)
	switch {
	case b.HasBOM && !a.HasBOM && before != nil:
		w.line(`\ A byte order mark was added`)
	case a.HasBOM && !b.HasBOM && after != nil:
		w.line(`\ The byte order mark was removed`)
	}
	for _, h := range hunks(sameRuns(a, b), len(a.Lines), len(b.Lines)) {
		w.hunk(a, b, h)
	}
	return w.text()
}

func sizeOf(b []byte) string {
	if b == nil {
		return "nothing"
	}
	return plural(len(b), "byte")
}

// run is a stretch of equal lines: lines of before from a, of after from b, both counted from 0.
type run struct{ a, b, lines int }

// hunk is one block of a diff: the lines of both files that it shows, ends not included, and the equal runs in it.
type hunk struct {
	fromA, toA, fromB, toB int
	same                   []run
}

// hunks cuts two files of so many lines, whose equal runs are given, into the blocks that have changes.
func hunks(same []run, linesA, linesB int) []hunk {
	var list []hunk
	open := hunk{}
	atA, atB := 0, 0
	changed := false
	for _, r := range append(same, run{linesA, linesB, 0}) {
		if changed = changed || r.a > atA || r.b > atB; !changed { // the files begin alike
			lead := max(r.lines-diffContext, 0)
			open = hunk{fromA: r.a + lead, fromB: r.b + lead, same: []run{{r.a + lead, r.b + lead, r.lines - lead}}}
			atA, atB = r.a+r.lines, r.b+r.lines
			continue
		}
		last := r.a == linesA && r.b == linesB || r.a+r.lines == linesA && r.b+r.lines == linesB
		if r.lines <= 2*diffContext && !last {
			open.same = append(open.same, r)
			atA, atB = r.a+r.lines, r.b+r.lines
			continue
		}
		tail := min(r.lines, diffContext)
		open.same = append(open.same, run{r.a, r.b, tail})
		open.toA, open.toB = r.a+tail, r.b+tail
		list = append(list, open)
		lead := max(r.lines-diffContext, 0)
		open = hunk{fromA: r.a + lead, fromB: r.b + lead, same: []run{{r.a + lead, r.b + lead, r.lines - lead}}}
		atA, atB = r.a+r.lines, r.b+r.lines
		changed = false
	}
	return list
}

// diffWriter writes at most so many lines and counts the rest.
type diffWriter struct {
	most    int
	lines   []string
	left    int
	clipped bool
}

func (w *diffWriter) header(path string, created, deleted bool) {
	from, to := "a/"+path, "b/"+path
	if created {
		from = "/dev/null"
	}
	if deleted {
		to = "/dev/null"
	}
	w.line("--- " + from)
	w.line("+++ " + to)
}

func (w *diffWriter) line(s string) {
	if len(w.lines) == w.most {
		w.left++
		return
	}
	w.lines = append(w.lines, s)
}

func (w *diffWriter) hunk(a, b Document, h hunk) {
	w.line(fmt.Sprintf("@@ -%s +%s @@", extent(h.fromA, h.toA), extent(h.fromB, h.toB)))
	atA, atB := h.fromA, h.fromB
	for _, r := range append(h.same, run{h.toA, h.toB, 0}) {
		w.change(a, b, atA, r.a, atB, r.b)
		w.show(' ', a, r.a, r.a+r.lines, 0)
		atA, atB = r.a+r.lines, r.b+r.lines
	}
}

// change shows lines that were replaced. Where one long line takes the place of another, both are shown where they differ.
func (w *diffWriter) change(a, b Document, fromA, toA, fromB, toB int) {
	at := 0
	if toA-fromA == 1 && toB-fromB == 1 && len(w.lines) < w.most {
		at = sharedHead(a.Text(fromA+1), b.Text(fromB+1))
	}
	w.show('-', a, fromA, toA, at)
	w.show('+', b, fromB, toB, at)
}

func sharedHead(a, b []byte) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

// show writes lines of a file, from the offset at of each if they are long.
func (w *diffWriter) show(sign byte, d Document, from, to, at int) {
	for i := from; i < to; i++ {
		if len(w.lines) == w.most {
			w.left += to - i
			if to == len(d.Lines) && !d.FinalNewline() {
				w.left++
			}
			return
		}
		l := d.Lines[i]
		text := string(d.Body[l.Start:max(l.End, l.Next-1)]) // the "\r" of a "\r\n" is shown as it is
		shown := clipTo(text, at, diffLineChars)
		w.clipped = w.clipped || shown != text
		w.line(string(sign) + shown)
		if l.Next == l.End {
			w.line(`\ No newline at end of file`)
		}
	}
}

// extent gives the place of a hunk's lines in one file, as unified diffs count them.
func extent(from, to int) string {
	switch n := to - from; n {
	case 0:
		return fmt.Sprintf("%d,0", from)
	case 1:
		return number(from + 1)
	default:
		return fmt.Sprintf("%d,%d", from+1, n)
	}
}

// text joins the lines; the last of a diff that was cut says so.
func (w *diffWriter) text() (string, bool) {
	if w.left > 0 {
		w.left++
		last := len(w.lines) - 1
		w.lines[last] = fmt.Sprintf("(the diff is cut here: %s not shown)", plural(w.left, "more line"))
		return strings.Join(w.lines, "\n"), true
	}
	return strings.Join(w.lines, "\n") + "\n", w.clipped
}

// DiffShown gives a diff as a model is shown it: at most so many lines of it, said where it goes on, and without the "\r"
// of a line's ending.
func DiffShown(diff string, most int) string {
	const open = `\ No newline`
	lines := strings.Split(strings.TrimSuffix(diff, "\n"), "\n")
	cut := len(lines) > most
	for i := range min(len(lines), most) {
		if i+1 == len(lines) || !strings.HasPrefix(lines[i+1], open) { // a line without an ending has no "\r" but its own
			lines[i] = strings.TrimSuffix(lines[i], "\r")
		}
	}
	if !cut {
		return strings.Join(lines, "\n")
	}
	return strings.Join(lines[:most], "\n") + "\n" + cutNotice("the diff goes on; read_file shows the file as it is now")
}
