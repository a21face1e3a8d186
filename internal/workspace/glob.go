package workspace

import (
	"strings"

	"github.com/bmatcuk/doublestar/v4"
	"golang.org/x/text/unicode/norm"

	"treeline/internal/call"
)

// globBranches is how many patterns without braces one glob may stand for. It bounds the time that matching takes:
// braces beside stars would otherwise be tried in every combination.
const globBranches = 64

const globExample = `A glob is like "**/*.md", "notes/*.txt" or "data/**/*.{csv,tsv}": "*" stays within one part of a path and "**" spans parts.`

// glob is a checked pattern: several without braces, of which one must match.
type glob struct {
	below    string
	patterns []string
	all      bool // no pattern was given
}

// newGlob checks a pattern to be matched against paths from the root and, where below is a folder, against paths from that
// folder as well. An empty pattern matches everything.
func newGlob(pattern, below string) (glob, *call.Refusal) {
	g := glob{below: below, all: pattern == ""}
	if g.all {
		return g, nil
	}
	pattern = norm.NFC.String(pattern)
	bad := func(why string) (glob, *call.Refusal) {
		return g, call.Refuse(call.InvalidArguments, `"glob" is %s: %s. %s`, quoted(pattern), why, globExample)
	}
	if rest, ok := fromSandbox(pattern); ok {
		if rest == "" {
			return g, sandboxRefusal(pattern, "")
		}
		return g, call.Refuse(call.PathInSandboxForm, "%s is how code in the sandbox spells it. Globs match paths from the root of the "+
			"workspace: use %s.", quoted(pattern), quoted(rest))
	}
	switch {
	case len(pattern) > PathBytes:
		return bad("it is longer than any path can be")
	case strings.HasPrefix(pattern, "/"), strings.HasPrefix(pattern, "./"), strings.HasPrefix(pattern, "../"), strings.Contains(pattern, "/../"):
		return bad(`it matches nothing, because paths begin at the root of the workspace, without "/", "./" or "../"`)
	case strings.HasSuffix(pattern, "/"):
		return bad(`it ends in "/" and so matches no file; "**" at the end matches all that is in a folder`)
	case !doublestar.ValidatePattern(pattern):
		return bad("a bracket or brace is not closed, or is empty, or a backslash stands at the end")
	}
	patterns, ok := branches(pattern)
	if !ok {
		return bad("its braces stand for too many patterns")
	}
	for _, p := range patterns {
		if !doublestar.ValidatePattern(p) {
			return bad("a bracket or brace is not closed")
		}
		if !strings.HasSuffix(p, "/") { // no file's path ends so
			g.patterns = append(g.patterns, p)
		}
	}
	return g, nil
}

// match reports whether a file is asked for.
func (g glob) match(path string) bool {
	if g.all || doesMatch(g.patterns, path) {
		return true
	}
	rest, ok := strings.CutPrefix(path, g.below+"/")
	return ok && g.below != "" && doesMatch(g.patterns, rest)
}

func doesMatch(patterns []string, path string) bool {
	for _, p := range patterns {
		if doublestar.MatchUnvalidated(p, path) {
			return true
		}
	}
	return false
}

// filter gives the entries that match.
func (g glob) filter(entries []Entry) []Entry {
	if g.all {
		return entries
	}
	var kept []Entry
	for _, e := range entries {
		if g.match(e.Path) {
			kept = append(kept, e)
		}
	}
	return kept
}

// branches expands the braces of a valid pattern. It reports false where they stand for more than globBranches patterns.
func branches(pattern string) ([]string, bool) {
	pending, done := []string{pattern}, []string(nil)
	for len(pending) > 0 {
		p := pending[len(pending)-1]
		pending = pending[:len(pending)-1]
		open, close, commas := firstBrace(p)
		if open < 0 {
			done = append(done, p)
			continue
		}
		from := open + 1
		for _, to := range append(commas, close) {
			pending = append(pending, joinStars(joinStars(p[:open], p[from:to]), p[close+1:]))
			from = to + 1
		}
		if len(pending)+len(done) > globBranches {
			return nil, false
		}
	}
	return done, true
}

// joinStars joins two pieces of a pattern so that a star on each side of the seam does not become "**", which spans parts.
func joinStars(a, b string) string {
	if strings.HasSuffix(a, "*") && !strings.HasSuffix(a, `\*`) && strings.HasPrefix(b, "*") {
		b = strings.TrimLeft(b, "*")
	}
	return a + b
}

// firstBrace finds the first "{" of p, its "}", and the commas between them that belong to it; open is -1 if there is none.
func firstBrace(p string) (open, close int, commas []int) {
	open = -1
	depth := 0
	for i := 0; i < len(p); i++ {
		switch p[i] {
		case '\\':
			i++
		case '[':
			i = classEnd(p, i)
		case '{':
			if depth++; depth == 1 {
				open = i
			}
		case ',':
			if depth == 1 {
				commas = append(commas, i)
			}
		case '}':
			if depth--; depth == 0 {
				return open, i, commas
			}
		}
	}
	return -1, 0, nil
}

// classEnd gives the index of the "]" that closes the class which begins at i.
func classEnd(p string, i int) int {
	for i++; i < len(p) && p[i] != ']'; i++ {
		if p[i] == '\\' {
			i++
		}
	}
	return i
}
