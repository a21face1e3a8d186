package workspace

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"treeline/internal/call"
)

// Span asks for lines, counted from 1, and for the column, in characters from 1, at which the first of them begins. Each
// is 0 where it was not given: the first line, the last line, the first column.
type Span struct {
	StartLine   int `json:"startLine,omitempty"`
	EndLine     int `json:"endLine,omitempty"`
	StartColumn int `json:"startColumn,omitempty"`
}

// Check refuses what no text could answer (invalid_arguments).
func (s Span) Check() *call.Refusal {
	for _, field := range []struct {
		name  string
		value int
	}{{"startLine", s.StartLine}, {"endLine", s.EndLine}, {"startColumn", s.StartColumn}} {
		if field.value < 0 {
			return call.Refuse(call.InvalidArguments, `%q is %d: it counts from 1, like "startLine": 1, "endLine": 40.`, field.name, field.value)
		}
	}
	if s.EndLine != 0 && s.EndLine < max(s.StartLine, 1) {
		return call.Refuse(call.InvalidArguments, `"endLine" is %d and "startLine" is %d: endLine is the last line to read and cannot be before `+
			`startLine, like "startLine": 1, "endLine": 40.`, s.EndLine, max(s.StartLine, 1))
	}
	return nil
}

// Cut says what stopped a read before the end of what was asked.
type Cut string

const (
	// CutCharacters is the budget of the call: lines are long, narrow the range.
	CutCharacters Cut = "characters"
	// CutLines is the cap of each path: the file is long, read on.
	CutLines Cut = "lines"
)

// ReadLines is what was shown of a text. EndLine is StartLine - 1 where no line was.
type ReadLines struct {
	StartLine  int `json:"startLine"`
	EndLine    int `json:"endLine"`
	TotalLines int `json:"totalLines"`
	// Newline is lf, crlf, mixed or none.
	Newline      string `json:"newline"`
	FinalNewline bool   `json:"finalNewline"`
	// Cut is empty unless lines remain in the asked range; then NextLine, and NextColumn where it is within a line, is
	// where to go on.
	Cut        Cut `json:"cut,omitempty"`
	NextLine   int `json:"nextLine,omitempty"`
	NextColumn int `json:"nextColumn,omitempty"`
}

// whole reports whether every line was shown from its first character.
func (r ReadLines) whole(span Span) bool {
	return r.StartLine <= 1 && r.EndLine == r.TotalLines && r.Cut == "" && span.StartColumn <= 1
}

// ReadText shows lines of a text as number<TAB>text, within the limits of one call: for read_result. A text that is cut ends
// in a notice that says where to go on. It refuses with invalid_arguments or range_out_of_file.
func (l Limits) ReadText(text string, span Span) (string, ReadLines, *call.Refusal) {
	budget := l.ReadChars
	shown, lines, refusal := l.readLines(textBody([]byte(text)), span, &budget)
	if refusal != nil {
		return "", lines, refusal
	}
	if lines.Cut != "" {
		shown += l.cutLine(lines)
	}
	return shown, lines, nil
}

// readLines shows the lines of body that span asks for, as far as the budget and the line cap go, and takes what it shows
// from the budget: the characters of each line and one for each newline between them. The number<TAB> is not counted.
//
// A line that does not fit is left for the next call, unless it is longer than a whole budget: then what fits of it is shown.
func (l Limits) readLines(body []byte, span Span, budget *int) (string, ReadLines, *call.Refusal) {
	lines := ReadLines{StartLine: max(span.StartLine, 1), TotalLines: countLines(body), Newline: newlineKind(body)}
	lines.FinalNewline = len(body) > 0 && body[len(body)-1] == '\n'
	lines.EndLine = lines.StartLine - 1
	if refusal := span.Check(); refusal != nil {
		return "", lines, refusal
	}
	if lines.StartLine > max(lines.TotalLines, 1) {
		return "", lines, call.Refuse(call.RangeOutOfFile, `"startLine" is %d, but there are only %s. Ask for a line up to that.`,
			lines.StartLine, counted(lines.TotalLines, "line"))
	}
	last := lines.TotalLines
	if span.EndLine != 0 {
		last = min(last, span.EndLine)
	}
	if last == 0 {
		return "", lines, emptyColumn(span)
	}
	at := lineOffset(body, lines.StartLine)
	at, refusal := skipColumns(body, at, lines.StartLine, span.StartColumn)
	if refusal != nil {
		return "", lines, refusal
	}
	shown := l.show(body, at, last, max(span.StartColumn, 1), &lines, budget)
	return shown, lines, nil
}

// emptyColumn refuses a column in a text that has no lines.
func emptyColumn(span Span) *call.Refusal {
	if span.StartColumn > 1 {
		return call.Refuse(call.RangeOutOfFile, `"startColumn" is %d, but there are 0 lines: the text is empty.`, span.StartColumn)
	}
	return nil
}

// skipColumns gives the byte of the character at the column of the line that begins at byte at.
func skipColumns(body []byte, at, number, column int) (int, *call.Refusal) {
	if column <= 1 {
		return at, nil
	}
	text := body[at:lineAt(body, at).End]
	if chars := utf8.RuneCount(text); column > chars {
		return 0, call.Refuse(call.RangeOutOfFile, `"startColumn" is %d, but line %d has only %s.`, column, number, counted(chars, "character"))
	}
	return at + len(prefixChars(string(text), column-1)), nil
}

// show writes lines from byte at on and says in lines how far it came.
func (l Limits) show(body []byte, at, last, column int, lines *ReadLines, budget *int) string {
	var b strings.Builder
	for number := lines.StartLine; number <= last; number++ {
		shownLines := number - lines.StartLine
		if shownLines == l.ReadLines {
			lines.Cut, lines.NextLine = CutLines, number
			return b.String()
		}
		line := lineAt(body, at)
		text := body[line.Start:line.End]
		chars, left := utf8.RuneCount(text), *budget
		if shownLines > 0 {
			left-- // the newline between
		}
		if chars > left {
			lines.Cut, lines.NextLine = CutCharacters, number
			if chars > l.ReadChars && left > 0 {
				writeLine(&b, number, prefixChars(string(text), left))
				lines.EndLine, lines.NextColumn, *budget = number, column+left, 0
			}
			return b.String()
		}
		writeLine(&b, number, string(text))
		lines.EndLine, *budget = number, left-chars
		at, column = line.Next, 1
	}
	return b.String()
}

func writeLine(b *strings.Builder, number int, text string) {
	b.WriteString(strconv.Itoa(number))
	b.WriteByte('\t')
	b.WriteString(text)
	b.WriteByte('\n')
}

// cutLine is the notice that a read ends in.
func (l Limits) cutLine(lines ReadLines) string {
	next := fmt.Sprintf("startLine %d", lines.NextLine)
	if lines.NextColumn != 0 {
		next += fmt.Sprintf(" and startColumn %d", lines.NextColumn)
	}
	if lines.Cut == CutLines {
		return cutNotice("a read shows at most %d lines of a text and this one has %d; read on with %s", l.ReadLines, lines.TotalLines, next)
	}
	return cutNotice("a read shows at most %d characters and these lines are long; ask for fewer lines, or read on with %s", l.ReadChars, next)
}

// counted spells a number of things.
func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
