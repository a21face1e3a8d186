package workspace

import (
	"fmt"
	"strconv"
	"strings"
)

// skippedChars and queryChars bound what the summary takes beside the matches.
const (
	skippedChars = 400
	queryChars   = 60
)

// text puts the summary before what was shown.
func (s *search) text() string {
	var b strings.Builder
	for q, total := range s.data.Totals {
		if len(s.data.Totals) > 1 {
			fmt.Fprintf(&b, "%d. ", q+1)
		}
		fmt.Fprintf(&b, "%s: %s in %s\n", shortQuery(total.Query), counted(total.Matches, "matching line"), counted(total.Files, "file"))
		if strings.ContainsRune(total.Query, '\n') {
			b.WriteString("   This query holds a newline and so can match nothing: a query matches within one line. Search for one of its lines.\n")
		}
	}
	fmt.Fprintf(&b, "%s searched%s.\n", counted(s.data.Searched, "file"), s.skippedText())
	if s.matches() == 0 {
		b.WriteString(s.hints())
		return strings.TrimSuffix(b.String(), "\n")
	}
	b.WriteString(s.legend())
	b.WriteString("\n" + s.shown.String())
	if s.data.Cut != "" {
		b.WriteString(cutNotice("a search shows at most %d characters: of the matches %d of %d are shown; narrow it with path, glob, longer "+
			"queries or fewer context lines", s.limits.SearchChars, len(s.data.Matches), s.matches()))
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// legend says how the lines are marked.
func (s *search) legend() string {
	marks := `Lines are marked "number:"`
	if len(s.needles) > 1 {
		marks = `Matching lines are marked "number:queries:"`
	}
	if s.req.ContextLines > 0 {
		marks += ` where they match and "number-" where they are context`
	}
	return marks + ".\n"
}

func shortQuery(q string) string {
	if head := prefixChars(q, queryChars); len(head) < len(q) {
		return strconv.Quote(head) + "..."
	}
	return strconv.Quote(q)
}

func (s *search) skippedText() string {
	n := len(s.data.Skipped)
	if n == 0 {
		return ""
	}
	var names []string
	named := 0
	for chars := 0; named < n; named++ {
		if chars += len(s.data.Skipped[named].Path); chars > skippedChars && named > 0 {
			break
		}
		names = append(names, s.data.Skipped[named].Path)
	}
	text := fmt.Sprintf("; %s skipped as not text: %s", counted(n, "file"), quotedList(names, named))
	if named < n {
		text += fmt.Sprintf(" and %d more", n-named)
	}
	return text
}

// hints says why nothing may have been found.
func (s *search) hints() string {
	var b strings.Builder
	if s.data.Searched+len(s.data.Skipped) == 0 && s.req.Glob != "" {
		b.WriteString(globHint(s.req.Glob, s.asked))
	}
	for _, q := range s.req.Queries {
		if looksLikePattern(q) {
			fmt.Fprintf(&b, "Queries are literal text, not patterns: %s was looked for as it stands, every character of it. Search for a plain "+
				"piece of the text instead; up to %d queries go in one call.\n", shortQuery(q), s.limits.SearchQueries)
			break
		}
	}
	if !s.req.IgnoreCase && s.data.Searched > 0 {
		b.WriteString("Case was not ignored; ignoreCase does that.\n")
	}
	return b.String()
}

// looksLikePattern reports whether a query has what regular expressions and globs are written with.
func looksLikePattern(q string) bool {
	for _, sign := range []string{".*", ".+", ".?", `\d`, `\w`, `\s`, `\b`, `\.`, `\(`, `\[`, `\S`, `\W`, `\D`, "[^", "(?", "|", "]+", "]*", ")+", ")*",
		")?", "a-z", "A-Z", "0-9", "*", "+$"} {
		if strings.Contains(q, sign) {
			return true
		}
	}
	return strings.HasPrefix(q, "^") || (strings.HasSuffix(q, "$") && len(q) > 1)
}
