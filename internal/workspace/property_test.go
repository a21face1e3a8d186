package workspace

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/bmatcuk/doublestar/v4"
	"pgregory.net/rapid"
)

// textOf draws texts in which everything that could be taken for a line's end, or change length when folded, is common.
func textOf() *rapid.Generator[string] {
	pieces := []string{"a", "b", "k", "s", "\n", "\r\n", "\r", "\f", "\u0085", "\u2028", "é", "e\u0301", "\u212a", "\u017f", "ß", "\u1e9e", "\u0130", "𝄞",
		"\t", " ", "ab", "abab", "\ufeff", "Σ", "ς", "\n\n"}
	return rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 60).Draw(t, "pieces"), "")
	})
}

func checkScanner(t fataler, text string) {
	d := Split([]byte(text))
	body := textBody([]byte(text))
	var lines []Line
	for at := 0; at < len(body); {
		lines = append(lines, lineAt(body, at))
		if at > 0 && lineBefore(body, at) != lines[len(lines)-2] {
			t.Fatalf("lineBefore byte %d is %v, want %v", at, lineBefore(body, at), lines[len(lines)-2])
		}
		if got := lineOffset(body, len(lines)); got != at {
			t.Fatalf("line %d begins at %d, want %d", len(lines), got, at)
		}
		at = lines[len(lines)-1].Next
	}
	if !slices.Equal(lines, d.Lines) || countLines(body) != len(d.Lines) || newlineKind(body) != d.Newlines() || string(d.Body) != string(body) {
		t.Fatalf("walked %v, %d lines, %s; split %v, %s", lines, countLines(body), newlineKind(body), d.Lines, d.Newlines())
	}
	if e := NewEntry("p", []byte(text), 1); e.Kind == Text && e.Lines != len(d.Lines) {
		t.Fatalf("listed with %d lines, split into %d", e.Lines, len(d.Lines))
	}
}

// fataler is what rapid and the testing package share.
type fataler interface {
	Fatalf(format string, args ...any)
}

func TestScannerWalksTheLinesThatSplitGives(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { checkScanner(t, textOf().Draw(t, "text")) })
}

// Reading on, with nextLine and nextColumn, gives every line as Split has it, however small the budget.
func TestReadingOnGivesTheWholeText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := textOf().Draw(t, "text")
		limits := Limits{ReadChars: rapid.IntRange(1, 12).Draw(t, "characters"), ReadLines: rapid.IntRange(1, 5).Draw(t, "lines")}
		checkReadingOn(t, limits, text)
	})
}

func checkReadingOn(t fataler, limits Limits, text string) {
	d := Split([]byte(text))
	got := make([]string, len(d.Lines))
	var span Span
	for steps := 0; ; steps++ {
		if steps > 2*len(text)+2 {
			t.Fatalf("no progress at %+v", span)
		}
		shown, lines, refusal := limits.ReadText(text, span)
		if refusal != nil {
			t.Fatalf("%+v: %v", span, refusal)
		}
		if EndsInCutNotice(shown) != (lines.Cut != "") {
			t.Fatalf("cut is %q, and it ends %q", lines.Cut, shown)
		}
		chars := 0
		at := 0 // in shown
		for n := lines.StartLine; n <= lines.EndLine; n++ {
			label := strconv.Itoa(n) + "\t"
			if !strings.HasPrefix(shown[at:], label) {
				t.Fatalf("line %d is not at %q", n, shown[at:])
			}
			at += len(label)
			rest := string(d.Text(n))[len(got[n-1]):]
			if n == lines.EndLine && lines.NextColumn != 0 {
				rest = prefixChars(rest, lines.NextColumn-max(span.StartColumn, 1))
				if n != lines.StartLine {
					rest = prefixChars(string(d.Text(n)), lines.NextColumn-1)
				}
			}
			if !strings.HasPrefix(shown[at:], rest+"\n") {
				t.Fatalf("line %d is %q, want %q", n, shown[at:], rest)
			}
			at += len(rest) + 1
			got[n-1] += rest
			chars += utf8.RuneCountInString(rest)
		}
		if chars > limits.ReadChars || lines.EndLine-lines.StartLine >= limits.ReadLines {
			t.Fatalf("%d characters, lines %d to %d, past %+v", chars, lines.StartLine, lines.EndLine, limits)
		}
		if lines.Cut == "" {
			break
		}
		span = Span{StartLine: lines.NextLine, StartColumn: lines.NextColumn}
	}
	for n, line := range got {
		if line != string(d.Text(n+1)) {
			t.Fatalf("line %d read as %q, is %q", n+1, line, d.Text(n+1))
		}
	}
}

// hitsOf finds, slowly and plainly, the column of the first hit on each line that has one.
func hitsOf(text, query string, ignoreCase bool) map[int]int {
	d, hits := Split([]byte(text)), map[int]int{}
	want := []rune(query)
	for n := range d.Lines {
		line := []rune(string(d.Text(n + 1)))
		for at := 0; at+len(want) <= len(line); at++ {
			same := true
			for i, r := range want {
				same = same && (line[at+i] == r || ignoreCase && foldRune(line[at+i]) == foldRune(r))
			}
			if same {
				hits[n+1] = at + 1
				break
			}
		}
	}
	return hits
}

func checkSearch(t fataler, text string, req SearchRequest) {
	tree := NewTree([]Entry{NewEntry("p", []byte(text), 1)})
	shown, data, err := tree.Search(req, DefaultLimits(), func(string) ([]byte, error) { return []byte(text), nil })
	if err != nil {
		t.Fatalf("%+v: %v", req, err)
	}
	if data.Cut != "" {
		return
	}
	var want []Match
	matching := map[int]bool{}
	for q, query := range req.Queries {
		hits := hitsOf(text, query, req.IgnoreCase)
		if total := data.Totals[q]; total.Matches != len(hits) || total.Files != min(len(hits), 1) {
			t.Fatalf("%q: %+v, want %d", query, total, len(hits))
		}
		for line, column := range hits {
			want = append(want, Match{"p", line, column, query})
			matching[line] = true
		}
	}
	rank := func(q string) int { return slices.Index(req.Queries, q) }
	slices.SortStableFunc(want, func(a, b Match) int {
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		return rank(a.Query) - rank(b.Query)
	})
	if !slices.Equal(data.Matches, want) && len(want) > 0 {
		t.Fatalf("found %+v, want %+v", data.Matches, want)
	}
	checkShown(t, text, shown, req, matching)
}

// checkShown checks that the lines within contextLines of a match are shown, each once, in order and rightly marked.
func checkShown(t fataler, text, shown string, req SearchRequest, matching map[int]bool) {
	if len(matching) == 0 {
		return
	}
	d := Split([]byte(text))
	var want strings.Builder
	last := 0
	for n := 1; n <= len(d.Lines); n++ {
		near := false
		for m := n - req.ContextLines; m <= n+req.ContextLines; m++ {
			near = near || matching[m]
		}
		if !near {
			continue
		}
		if last != 0 && last != n-1 && req.ContextLines > 0 {
			want.WriteString("--\n")
		}
		last = n
		mark := "-"
		if matching[n] {
			mark = ":"
			if len(req.Queries) > 1 {
				var queries []string
				for q, query := range req.Queries {
					if hitsOf(text, query, req.IgnoreCase)[n] > 0 {
						queries = append(queries, strconv.Itoa(q+1))
					}
				}
				mark = ":" + strings.Join(queries, ",") + ":"
			}
		}
		head := fmt.Sprintf("%d%s\t", n, mark)
		fmt.Fprintf(&want, "%s%s\n", head, longLine(t, shown, head, string(d.Text(n)), matching[n]))
	}
	if _, got, _ := strings.Cut(shown, "\n\np\n"); got != strings.TrimSuffix(want.String(), "\n") {
		t.Fatalf("shown %q\nwant  %q", got, want.String())
	}
}

var (
	cutBefore = regexp.MustCompile(`^\[cut here: (\d+) characters before this\] `)
	cutAfter  = regexp.MustCompile(` \[cut here: (\d+) (?:characters after this|more characters of this line)\]$`)
)

// longLine gives a line as it is shown behind its head: whole, or a longer one as the part that it is said to be.
func longLine(t fataler, shown, head, line string, matching bool) string {
	most, whole := DefaultLimits().SearchLineChars, []rune(line)
	if len(whole) <= most {
		return line
	}
	_, got, _ := strings.Cut("\n"+shown, "\n"+head)
	got, _, _ = strings.Cut(got, "\n")
	before, part := 0, got
	if m := cutBefore.FindStringSubmatch(got); m != nil && matching {
		before, _ = strconv.Atoi(m[1])
		part = part[len(m[0]):]
	}
	after := 0
	if m := cutAfter.FindStringSubmatch(part); m != nil {
		after, _ = strconv.Atoi(m[1])
		part = part[:len(part)-len(m[0])]
	}
	if before+most+after != len(whole) || part != string(whole[before:before+most]) {
		t.Fatalf("a line of %d characters is shown from %d on, %d before its end: %q", len(whole), before, after, got)
	}
	return got
}

func TestSearchFindsWhatAPlainLoopFinds(t *testing.T) {
	queryOf := rapid.Custom(func(t *rapid.T) string {
		pieces := []string{"a", "b", "k", "K", "s", "ab", "aba", "\r", "é", "\u212a", "ß", "\u0130", "σ", " ", "\t", "\u0301", "𝄞", "\u0085", "A", "\ufeff"}
		return strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 1, 4).Draw(t, "query"), "")
	})
	rapid.Check(t, func(t *rapid.T) {
		text := textOf().Draw(t, "text")
		if rapid.Bool().Draw(t, "long") {
			text = strings.Repeat(text, 12)
		}
		checkSearch(t, text, SearchRequest{Queries: rapid.SliceOfNDistinct(queryOf, 1, 5, rapid.ID).Draw(t, "queries"),
			ContextLines: rapid.IntRange(0, 3).Draw(t, "context"), IgnoreCase: rapid.Bool().Draw(t, "ignoring case")})
	})
}

func TestSieveCountsWhatNeedlesCount(t *testing.T) {
	pieces := []string{"a", "b", "k", "s", "K", "S", "abks", "skab", "\n", "\r\n", "é"}
	words := func(t *rapid.T, least, most int, more ...string) string {
		return strings.Join(rapid.SliceOfN(rapid.SampledFrom(append(more, pieces...)), least, most).Draw(t, "pieces"), "")
	}
	rapid.Check(t, func(t *rapid.T) {
		ignoreCase := rapid.Bool().Draw(t, "ignoring case")
		var queries []string
		for range rapid.IntRange(1, 5).Draw(t, "needles") {
			queries = append(queries, words(t, 1, 6))
		}
		more := queries
		if rapid.IntRange(0, 4).Draw(t, "folds from beyond ASCII") == 0 {
			more = append(more, "\u212a", "\u017f")
		}
		body := []byte(words(t, 0, 60, more...))
		h := sample([][]byte{body})
		var needles []needle
		for _, query := range queries {
			needles = append(needles, newNeedle(query, ignoreCase, &h))
		}
		s := newSieve(needles, &h)
		if s == nil {
			return
		}
		got, want := make([]int, len(needles)), make([]int, len(needles))
		if !s.count(body, got) {
			return
		}
		for _, q := range s.index {
			want[q] = needles[q].countHits(body)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("the sieve counts %v, its needles %v", got, want)
		}
	})
}

// Every short query in every short text of three letters, of which two are one but for case.
func TestSteadySearchFindsTheFirstMatch(t *testing.T) {
	var words func(most int) []string
	words = func(most int) []string {
		all := []string{""}
		if most > 0 {
			for _, w := range words(most - 1) {
				all = append(all, w+"a", w+"\u00c9", w+"\u00e9")
			}
		}
		return all
	}
	for _, query := range words(4)[1:] {
		n := newNeedle(query, true, new(histogram))
		for _, text := range words(6) {
			f := n.in([]byte(text))
			start, end := f.nextSteady(0)
			column := 0
			if start >= 0 {
				column = utf8.RuneCountInString(text[:start]) + 1
			}
			if want := hitsOf(text, query, true)[1]; column != want || column > 0 && utf8.RuneCountInString(text[start:end]) != utf8.RuneCountInString(query) {
				t.Fatalf("%q in %q found at column %d, is at %d", query, text, column, want)
			}
		}
	}
}

// Within its band, the distance is that of the whole table.
func TestDistanceIsExactUpToItsBound(t *testing.T) {
	letters := rapid.SliceOfN(rapid.SampledFrom([]rune("abc")), 0, 12)
	rapid.Check(t, func(t *rapid.T) {
		a, b, most := letters.Draw(t, "a"), letters.Draw(t, "b"), rapid.IntRange(1, 6).Draw(t, "most")
		table := make([][]int, len(a)+1)
		for i := range table {
			table[i] = make([]int, len(b)+1)
			for j := range table[i] {
				if i == 0 || j == 0 {
					table[i][j] = i + j
					continue
				}
				same := 1
				if a[i-1] == b[j-1] {
					same = 0
				}
				table[i][j] = min(table[i-1][j]+1, table[i][j-1]+1, table[i-1][j-1]+same)
				if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
					table[i][j] = min(table[i][j], table[i-2][j-2]+1)
				}
			}
		}
		if got, want := distance(a, b, most), min(table[len(a)][len(b)], most+1); got != want {
			t.Fatalf("from %q to %q: %d, want %d", string(a), string(b), got, want)
		}
	})
}

// The searches of a whole tree and of its files one by one tell the same.
func TestSearchOfATreeIsTheSumOfItsFiles(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := files{}
		for i := range rapid.IntRange(0, 6).Draw(t, "files") {
			f[strconv.Itoa(i)] = textOf().Draw(t, "text")
		}
		tree, content := f.tree()
		req := SearchRequest{Queries: []string{"a", "ab", "é"}, ContextLines: 1}
		_, whole, err := tree.Search(req, DefaultLimits(), content)
		if err != nil {
			t.Fatal(err)
		}
		var matches []Match
		for _, e := range tree.All() {
			req.Path = e.Path
			_, one, err := tree.Search(req, DefaultLimits(), content)
			if err != nil {
				t.Fatal(err)
			}
			matches = append(matches, one.Matches...)
		}
		if !slices.Equal(matches, whole.Matches) {
			t.Fatalf("one by one %+v, together %+v", matches, whole.Matches)
		}
	})
}

// A path that is kept obeys every rule, and stays as it is when it is checked again.
func checkPath(t fataler, in string) {
	p, refusal := Path(in)
	if refusal != nil {
		if !utf8.ValidString(refusal.Text) || len(refusal.Text) > 4000 || strings.ContainsAny(refusal.Text, "\x00\n\r") {
			t.Fatalf("%q is refused in the words %q", in, refusal.Text)
		}
		return
	}
	if again, refusal := Path(p); refusal != nil || again != p {
		t.Fatalf("%q is kept as %q, and that as %q, %v", in, p, again, refusal)
	}
	if found, reason := FoundPath(p); reason != "" || found != p {
		t.Fatalf("%q is a path, but in a run's tree %q, %s", p, found, reason)
	}
	if len(p) > PathBytes || !utf8.ValidString(p) || strings.ContainsAny(p, "\x00\\\n\r\t\x7f") {
		t.Fatalf("%q is kept as %q", in, p)
	}
	for part := range strings.SplitSeq(p, "/") {
		if part == "" || part == "." || part == ".." || len(part) > PartBytes {
			t.Fatalf("%q is kept as %q", in, p)
		}
	}
	if first, _, _ := strings.Cut(p, "/"); first == SandboxTree {
		t.Fatalf("%q is kept in the sandbox's spelling", p)
	}
}

func TestPathsThatAreKept(t *testing.T) {
	pieces := []string{"a", "workspace", "work", "/", "/", ".", "..", "\\", "é", "e\u0301", "\u0344", "\x00", "\u212b", "\xff", " ", "가", "\u1100\u1161", "ß"}
	rapid.Check(t, func(t *rapid.T) {
		checkPath(t, strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 12).Draw(t, "pieces"), ""))
	})
}

// Braces taken apart beforehand match what the glob as a whole does.
func TestGlobsMatchAsOnePattern(t *testing.T) {
	pieces := []string{"a", "b", "*", "**", "/", "?", "{a,b}", "{x,ab}", "{a/{b,c},b}", "[a-c]", "[^,{]", `\{`, `\,`, ",", "**/"}
	paths := []string{"a", "b", "ab", "a/b", "a/b/c", "b/a", "x/a", "{", "a,b", "a/{/b", ",", "abc", "ax"}
	rapid.Check(t, func(t *rapid.T) {
		pattern := strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 1, 6).Draw(t, "pieces"), "")
		g, refusal := newGlob(pattern, "")
		if refusal != nil || strings.Contains(pattern, "*{") || strings.Contains(pattern, "}*") {
			return // stars beside braces: the library reads them in its own way; see TestList for ours
		}
		for _, p := range paths {
			want, err := doublestar.Match(pattern, p)
			if got := g.match(p); err == nil && got != want {
				t.Fatalf("%q against %q: %v, want %v (taken apart: %q)", pattern, p, got, want, g.patterns)
			}
		}
	})
}
