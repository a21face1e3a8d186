package workspace

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"treeline/internal/call"
)

func search1(t *testing.T, f files, req SearchRequest, l Limits) (string, SearchData) {
	t.Helper()
	tree, content := f.tree()
	text, data, err := tree.Search(req, l, content)
	if err != nil {
		t.Fatal(err)
	}
	return text, data
}

func TestSearchData(t *testing.T) {
	for _, c := range []struct {
		name  string
		files files
		req   SearchRequest
		want  string
	}{
		{"path, line, column, query", files{"a": "x\nneedle y\n", "b/c": "a needle\n"}, SearchRequest{Queries: []string{"needle"}},
			`{"matches":[{"path":"a","line":2,"column":1,"query":"needle"},{"path":"b/c","line":1,"column":3,"query":"needle"}],` +
				`"totals":[{"query":"needle","matches":2,"files":2}],"searched":2,"skipped":[]}`},
		{"text, not a pattern", files{"a": "abc\na.c\n"}, SearchRequest{Queries: []string{"a.c"}},
			`{"matches":[{"path":"a","line":2,"column":1,"query":"a.c"}],"totals":[{"query":"a.c","matches":1,"files":1}],"searched":1,"skipped":[]}`},
		{"a line once, its first column", files{"a": "xhit hit hit"}, SearchRequest{Queries: []string{"hit"}},
			`{"matches":[{"path":"a","line":1,"column":2,"query":"hit"}],"totals":[{"query":"hit","matches":1,"files":1}],"searched":1,"skipped":[]}`},
		{"an entry for each query on a line, in their order", files{"a": "b a\nb\n"}, SearchRequest{Queries: []string{"a", "zz", "b"}},
			`{"matches":[{"path":"a","line":1,"column":3,"query":"a"},{"path":"a","line":1,"column":1,"query":"b"},` +
				`{"path":"a","line":2,"column":1,"query":"b"}],"totals":[{"query":"a","matches":1,"files":1},{"query":"zz","matches":0,"files":0},` +
				`{"query":"b","matches":2,"files":1}],"searched":1,"skipped":[]}`},
		{"columns are characters", files{"a": "é→𝄞x"}, SearchRequest{Queries: []string{"x"}},
			`{"matches":[{"path":"a","line":1,"column":4,"query":"x"}],"totals":[{"query":"x","matches":1,"files":1}],"searched":1,"skipped":[]}`},
		{"a byte order mark is not matched nor counted", files{"a": BOM + "one\n"}, SearchRequest{Queries: []string{"one", "\ufeff"}},
			`{"matches":[{"path":"a","line":1,"column":1,"query":"one"}],"totals":[{"query":"one","matches":1,"files":1},` +
				`{"query":"` + "\ufeff" + `","matches":0,"files":0}],"searched":1,"skipped":[]}`},
		{"a lone carriage return ends no line", files{"a": "alpha\nbeta\rcarriage\ngamma NEEDLE\n"}, SearchRequest{Queries: []string{"NEEDLE"}},
			`{"matches":[{"path":"a","line":3,"column":7,"query":"NEEDLE"}],"totals":[{"query":"NEEDLE","matches":1,"files":1}],"searched":1,"skipped":[]}`},
		{"a newline's carriage return belongs to no line", files{"a": "x\r\n\r\ny\rz\r\n\r"}, SearchRequest{Queries: []string{"\r"}},
			`{"matches":[{"path":"a","line":3,"column":2,"query":"\r"},{"path":"a","line":4,"column":1,"query":"\r"}],` +
				`"totals":[{"query":"\r","matches":2,"files":1}],"searched":1,"skipped":[]}`},
		{"a newline matches nothing", files{"a": "x\ny\n"}, SearchRequest{Queries: []string{"x\ny", "\n", "y"}},
			`{"matches":[{"path":"a","line":2,"column":1,"query":"y"}],"totals":[{"query":"x\ny","matches":0,"files":0},` +
				`{"query":"\n","matches":0,"files":0},{"query":"y","matches":1,"files":1}],"searched":1,"skipped":[]}`},
		{"binaries are skipped", files{"a": "word\n", "b": "word\x00word"}, SearchRequest{Queries: []string{"word"}},
			`{"matches":[{"path":"a","line":1,"column":1,"query":"word"}],"totals":[{"query":"word","matches":1,"files":1}],"searched":1,` +
				`"skipped":[{"path":"b","reason":"not text"}]}`},
		{"below a folder, by glob", files{"n/a.md": "w", "n/a.txt": "w", "a.md": "w", "n/b/c.md": "w"}, SearchRequest{Queries: []string{"w"}, Path: "n", Glob: "**/*.md"},
			`{"matches":[{"path":"n/a.md","line":1,"column":1,"query":"w"},{"path":"n/b/c.md","line":1,"column":1,"query":"w"}],` +
				`"totals":[{"query":"w","matches":2,"files":2}],"searched":2,"skipped":[]}`},
		{"one file", files{"a": "w", "b": "w"}, SearchRequest{Queries: []string{"w"}, Path: "b"},
			`{"matches":[{"path":"b","line":1,"column":1,"query":"w"}],"totals":[{"query":"w","matches":1,"files":1}],"searched":1,"skipped":[]}`},
		{"nothing there", files{}, SearchRequest{Queries: []string{"w"}},
			`{"matches":[],"totals":[{"query":"w","matches":0,"files":0}],"searched":0,"skipped":[]}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, data := search1(t, c.files, c.req, DefaultLimits())
			wantJSON(t, data, strings.NewReplacer("\r", `\r`, "\n", `\n`).Replace(c.want))
		})
	}
}

func TestSearchIgnoringCase(t *testing.T) {
	for _, c := range []struct {
		content, query string
		column         int // 0: no match
	}{
		{"Total", "total", 1},
		{"sub TOTAL", "Total", 5},
		{"ÀÉ x", "éx", 0},
		{"xÀÉ", "àé", 2},
		{"5 \u212a", "k", 3}, // the Kelvin sign is three bytes
		{"\u212aelvin", "kelvin", 1},
		{"K", "\u212a", 1},
		{"mi\u017fs", "MISS", 1},     // long s
		{"STRASSE", "straße", 0},     // one character for one
		{"STRA\u1e9eE", "straße", 1}, // capital sharp s
		{"\u0130stanbul", "i", 0},    // dotted capital I folds to itself
		{"\u0130stanbul", "ISTANBUL", 0},
		{"\u0130x İ", "X", 2},
		{"ΣΊΣΥΦΟΣ", "σίσυφος", 1},
		{"\u212a\u212ab", "kb", 2},
		{"aaab", "AAB", 2},
		{"ababac", "ABAC", 3},
		{"a\u0301B", "áb", 0},
		{"ǅ", "ǆ", 1},
	} {
		t.Run(fmt.Sprintf("%q in %q", c.query, c.content), func(t *testing.T) {
			_, data := search1(t, files{"a": c.content}, SearchRequest{Queries: []string{c.query}, IgnoreCase: true}, DefaultLimits())
			column := 0
			if len(data.Matches) > 0 {
				column = data.Matches[0].Column
			}
			if column != c.column {
				t.Errorf("column %d, want %d", column, c.column)
			}
		})
	}
}

func TestSearchText(t *testing.T) {
	const nine = "l-one\nhit A\nl-three\nl-four\nhit B\nl-six\nl-seven\nl-eight\nl-nine\n"
	limits := DefaultLimits()
	short := limits
	short.SearchLineChars = 10
	for _, c := range []struct {
		name   string
		files  files
		req    SearchRequest
		limits Limits
		want   string
	}{
		{"plain", files{"a": nine, "b": "hit"}, SearchRequest{Queries: []string{"hit"}}, limits,
			"\"hit\": 3 matching lines in 2 files\n2 files searched.\nLines are marked \"number:\".\n\na\n2:\thit A\n5:\thit B\n\nb\n1:\thit"},
		{"context is merged", files{"a": nine}, SearchRequest{Queries: []string{"hit"}, ContextLines: 3}, limits,
			"\"hit\": 2 matching lines in 1 file\n1 file searched.\nLines are marked \"number:\" where they match and \"number-\" where they are context.\n\n" +
				"a\n1-\tl-one\n2:\thit A\n3-\tl-three\n4-\tl-four\n5:\thit B\n6-\tl-six\n7-\tl-seven\n8-\tl-eight"},
		{"stretches that touch are one", files{"a": "x\nhit\n1\n2\nhit\n"}, SearchRequest{Queries: []string{"hit"}, ContextLines: 1}, limits,
			"\"hit\": 2 matching lines in 1 file\n1 file searched.\nLines are marked \"number:\" where they match and \"number-\" where they are context.\n\n" +
				"a\n1-\tx\n2:\thit\n3-\t1\n4-\t2\n5:\thit"},
		{"stretches apart", files{"a": "hit\n1\n2\n3\nhit\n"}, SearchRequest{Queries: []string{"hit"}, ContextLines: 1}, limits,
			"\"hit\": 2 matching lines in 1 file\n1 file searched.\nLines are marked \"number:\" where they match and \"number-\" where they are context.\n\n" +
				"a\n1:\thit\n2-\t1\n--\n4-\t3\n5:\thit"},
		{"the queries of a line are named", files{"a": "one two\ntwo\n"}, SearchRequest{Queries: []string{"two", "one"}}, limits,
			"1. \"two\": 2 matching lines in 1 file\n2. \"one\": 1 matching line in 1 file\n1 file searched.\n" +
				"Matching lines are marked \"number:queries:\".\n\na\n1:1,2:\tone two\n2:1:\ttwo"},
		{"a matching line in another's context is marked as matching", files{"a": "one\ntwo\n"}, SearchRequest{Queries: []string{"two", "one"}, ContextLines: 3}, limits,
			"1. \"two\": 1 matching line in 1 file\n2. \"one\": 1 matching line in 1 file\n1 file searched.\n" +
				"Matching lines are marked \"number:queries:\" where they match and \"number-\" where they are context.\n\na\n1:2:\tone\n2:1:\ttwo"},
		{"a long line is centred", files{"a": strings.Repeat("x", 20) + "HIT" + strings.Repeat("y", 30)}, SearchRequest{Queries: []string{"HIT"}}, short,
			"\"HIT\": 1 matching line in 1 file\n1 file searched.\nLines are marked \"number:\".\n\n" +
				"a\n1:\t[cut here: 17 characters before this] xxxHITyyyy [cut here: 26 characters after this]"},
		{"a long line, at its beginning", files{"a": "HIT" + strings.Repeat("y", 30)}, SearchRequest{Queries: []string{"HIT"}}, short,
			"\"HIT\": 1 matching line in 1 file\n1 file searched.\nLines are marked \"number:\".\n\na\n1:\tHITyyyyyyy [cut here: 23 characters after this]"},
		{"a long line, at its end", files{"a": strings.Repeat("é", 30) + "HIT"}, SearchRequest{Queries: []string{"HIT"}}, short,
			"\"HIT\": 1 matching line in 1 file\n1 file searched.\nLines are marked \"number:\".\n\na\n1:\t[cut here: 23 characters before this] éééééééHIT"},
		{"a query longer than what is shown of a line", files{"a": "ab0123456789cd"}, SearchRequest{Queries: []string{"b0123456789c"}}, short,
			"\"b0123456789c\": 1 matching line in 1 file\n1 file searched.\nLines are marked \"number:\".\n\n" +
				"a\n1:\t[cut here: 1 characters before this] b012345678 [cut here: 3 characters after this]"},
		{"a long line of context", files{"a": "HIT\n" + strings.Repeat("y", 12)}, SearchRequest{Queries: []string{"HIT"}, ContextLines: 1}, short,
			"\"HIT\": 1 matching line in 1 file\n1 file searched.\nLines are marked \"number:\" where they match and \"number-\" where they are context.\n\n" +
				"a\n1:\tHIT\n2-\tyyyyyyyyyy [cut here: 2 more characters of this line]"},
		{"skipped files are named", files{"a": "x", "b": "\x00", "c": "\xff"}, SearchRequest{Queries: []string{"q"}, IgnoreCase: true}, limits,
			"\"q\": 0 matching lines in 0 files\n1 file searched; 2 files skipped as not text: \"b\", \"c\"."},
		{"a pattern that finds nothing", files{"a": "x"}, SearchRequest{Queries: []string{`to.*al`}, IgnoreCase: true}, limits,
			"\"to.*al\": 0 matching lines in 0 files\n1 file searched.\nQueries are literal text, not patterns: \"to.*al\" was looked for as it stands, every " +
				"character of it. Search for a plain piece of the text instead; up to 5 queries go in one call."},
		{"a newline in a query", files{"a": "x\ny"}, SearchRequest{Queries: []string{"x\ny"}, IgnoreCase: true}, limits,
			"\"x\\ny\": 0 matching lines in 0 files\n   This query holds a newline and so can match nothing: a query matches within one line. " +
				"Search for one of its lines.\n1 file searched."},
	} {
		t.Run(c.name, func(t *testing.T) {
			text, _ := search1(t, c.files, c.req, c.limits)
			if text != c.want {
				t.Errorf("got  %q\nwant %q", text, c.want)
			}
		})
	}
}

func TestSearchBudget(t *testing.T) {
	f := files{}
	for i := range 300 {
		f[fmt.Sprintf("f%03d", i)] = strings.Repeat("some words and a needle in them\nand a line of context\n", 20)
	}
	for _, context := range []int{0, 3} {
		text, data := search1(t, f, SearchRequest{Queries: []string{"needle", "no such"}, ContextLines: context}, DefaultLimits())
		if n := len([]rune(text)); n > 21_000 || n < 19_000 {
			t.Errorf("%d characters", n)
		}
		if data.Totals[0] != (QueryTotal{"needle", 6000, 300}) {
			t.Errorf("totals are of all: %+v", data.Totals)
		}
		shown := strings.Count(text, "a needle in them")
		if len(data.Matches) != shown || data.Cut != CutCharacters {
			t.Errorf("%d matches in data, %d shown, cut %q", len(data.Matches), shown, data.Cut)
		}
		if !EndsInCutNotice(text) || !strings.Contains(text, fmt.Sprintf("of the matches %d of 6000 are shown", shown)) {
			t.Errorf("ends %q", text[len(text)-200:])
		}
	}
	t.Run("a line of 80,000 characters", func(t *testing.T) {
		text, data := search1(t, files{"a": strings.Repeat("x", 40_000) + "NEEDLE" + strings.Repeat("y", 40_000)}, SearchRequest{Queries: []string{"NEEDLE"}}, DefaultLimits())
		if !strings.Contains(text, "xNEEDLEy") || data.Matches[0].Column != 40_001 || len(text) > 2000 || !strings.Contains(text, "39503 characters before") ||
			!strings.Contains(text, "39503 characters after") {
			t.Errorf("%d characters: %.300s", len(text), text)
		}
	})
}

func TestSearchNamesFewOfManySkipped(t *testing.T) {
	f := files{}
	for i := range 300 {
		f[fmt.Sprintf("pictures/%04d.png", i)] = "\x89PNG\x00"
	}
	text, data := search1(t, f, SearchRequest{Queries: []string{"a"}, IgnoreCase: true}, DefaultLimits())
	if !strings.Contains(text, `0 files searched; 300 files skipped as not text: "pictures/0000.png", "pictures/0001.png"`) ||
		!strings.Contains(text, `"pictures/0022.png" and 277 more.`) || len(data.Skipped) != 300 {
		t.Errorf("%d in data; %s", len(data.Skipped), text)
	}
}

func TestSearchRefuses(t *testing.T) {
	tree, content := files{"notes/a": "x"}.tree()
	for _, c := range []struct {
		name  string
		req   SearchRequest
		code  call.Code
		facts []string
	}{
		{"no query", SearchRequest{}, call.InvalidArguments, []string{"0 strings", "1 to 5"}},
		{"six queries", SearchRequest{Queries: strings.Split("abcdef", "")}, call.InvalidArguments, []string{"6 strings", "1 to 5"}},
		{"an empty query", SearchRequest{Queries: []string{"a", ""}}, call.InvalidArguments, []string{"entry 2 is empty"}},
		{"four context lines", SearchRequest{Queries: []string{"a"}, ContextLines: 4}, call.InvalidArguments, []string{`"contextLines" is 4`, "0 to 3"}},
		{"no folder there", SearchRequest{Queries: []string{"a"}, Path: "note"}, call.PathNotFound, []string{`"notes"`}},
		{"a bad glob", SearchRequest{Queries: []string{"a"}, Glob: "[a"}, call.InvalidArguments, []string{`"[a"`}},
		{"the sandbox's spelling", SearchRequest{Queries: []string{"a"}, Path: "workspace/notes"}, call.PathInSandboxForm, []string{`the path is "notes"`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, _, err := tree.Search(c.req, DefaultLimits(), content)
			wantRefusal(t, refusalIn(t, err), c.code, c.facts...)
		})
	}
	t.Run("the storage's error is no refusal", func(t *testing.T) {
		broken := errors.New("broken")
		_, _, err := tree.Search(SearchRequest{Queries: []string{"a"}}, DefaultLimits(), func(string) ([]byte, error) { return nil, broken })
		if !errors.Is(err, broken) {
			t.Errorf("got %v", err)
		}
	})
}

// Queries that nearly match everywhere must not make a search slow.
func TestSearchTimeIsBounded(t *testing.T) {
	almost := strings.Repeat(strings.Repeat("a", 999)+"b", 4000)
	f := files{"almost": almost, "empty lines": strings.Repeat("\r\n", 2_000_000)}
	from := processorTime(t)
	for _, ignoreCase := range []bool{false, true} {
		_, data := search1(t, f, SearchRequest{Queries: []string{strings.Repeat("a", 1000), strings.Repeat("a", 999) + "ba", "\r", "k" + strings.Repeat("a", 999),
			strings.Repeat("a", 999) + "k"}, IgnoreCase: ignoreCase}, DefaultLimits())
		for i, want := range []int{0, 1, 0, 0, 0} {
			if data.Totals[i].Matches != want {
				t.Errorf("query %d: %d matches, want %d", i, data.Totals[i].Matches, want)
			}
		}
	}
	if took := processorTime(t) - from; took > 5*time.Second {
		t.Errorf("took %v", took)
	}
}
