package workspace

import (
	"regexp"
	"strings"
	"testing"

	"treeline/internal/call"
)

func ptr[T any](v T) *T { return &v }

// byText and byLine make edits as briefly as the tables below want them.
func byText(find, replace string) Edit { return Edit{Find: &find, Replace: &replace} }

func byTextAll(find, replace string) Edit {
	return Edit{Find: &find, Replace: &replace, All: ptr(true)}
}

func byLine(start, end int, anchor, text string) Edit {
	return Edit{StartLine: &start, EndLine: &end, Anchor: &anchor, Text: &text}
}

func TestTextEditsThatApply(t *testing.T) {
	for _, c := range []struct {
		name, before string
		edits        []Edit
		after        string
	}{
		{"one match", "one\ntwo\nthree\n", []Edit{byText("two", "TWO")}, "one\nTWO\nthree\n"},
		{"an LF excerpt in a CRLF file", "alpha\r\nbeta\r\ngamma", []Edit{byText("alpha\nbeta", "alpha\nBETA\ngamma2")}, "alpha\r\nBETA\r\ngamma2\r\ngamma"},
		{"a CRLF excerpt in an LF file", "a\nb\n", []Edit{byText("a\r\nb", "x\r\ny")}, "x\ny\n"},
		{"an LF excerpt in a CRLF file, all", "x\r\ny\r\nx\r\ny\r\n", []Edit{byTextAll("x\ny", "z\ny")}, "z\r\ny\r\nz\r\ny\r\n"},
		{"mixed newlines stay where they are", "a\r\nb\nc", []Edit{byText("c", "C")}, "a\r\nb\nC"},
		{"each newline of an excerpt keeps its form", "a\r\nb\nc\n", []Edit{byText("a\nb\nc", "1\n2\n3")}, "1\r\n2\n3\n"},
		{"a line more takes the newline of the line it grows from", "a\nb\r\n", []Edit{byText("b", "b1\nb2")}, "a\nb1\r\nb2\r\n"},
		{"what an excerpt keeps at its end keeps its newlines", "a\r\nb\nc\r\n", []Edit{byText("a\nb\nc", "new\nmore\na\nb\nc")}, "new\r\nmore\r\na\r\nb\nc\r\n"},
		{"a last line without newline takes that of the line before", "a\r\nb", []Edit{byText("b", "b\nc")}, "a\r\nb\r\nc"},
		{"a newline alone is the whole of a CRLF", "a\r\nb\r\nc", []Edit{byText("a\n", "a")}, "ab\r\nc"},
		{"a match does not begin inside a CRLF", "a\r\nb\r\n", []Edit{byText("\nb", "X")}, "aX\r\n"},
		{"all", "a a a\n", []Edit{byTextAll("a", "b")}, "b b b\n"},
		{"all takes leftmost hits that do not overlap", "aaaaa", []Edit{byTextAll("aa", "b")}, "bba"},
		{"all with the count expected", "a a\n", []Edit{{Find: ptr("a"), Replace: ptr("b"), All: ptr(true), ExpectedMatches: ptr(2)}}, "b b\n"},
		{"dollar signs and backslashes are literal", "price\n", []Edit{byText("price", "cost $& $$ $` $' $1 \\1")}, "cost $& $$ $` $' $1 \\1\n"},
		{"edits name the file as it was", "a b\n", []Edit{byText("a", "b"), byText("b", "c")}, "b c\n"},
		{"touching excerpts are fine", "ab\n", []Edit{byText("b", "2"), byText("a", "1")}, "12\n"},
		{"the byte order mark stays", BOM + "# T\n", []Edit{byText("# T", "# U")}, BOM + "# U\n"},
		{"the byte order mark stays though all else goes", BOM + "x", []Edit{byText("x", "")}, BOM},
		{"a lone CR is content", "10%\r50%\nx\n", []Edit{byText("x", "y")}, "10%\r50%\ny\n"},
		{"a lone CR is matched", "a\rb\n", []Edit{byText("a\rb", "c\rd")}, "c\rd\n"},
		{"a lone CR before a CRLF is content", "a\r\r\nb", []Edit{byText("a\r", "A")}, "A\r\nb"},
		{"a removal", "a\nb\nc\n", []Edit{byText("b\n", "")}, "a\nc\n"},
	} {
		t.Run(c.name, func(t *testing.T) { applies(t, c.before, c.edits, c.after) })
	}
}

func applies(t *testing.T, before string, edits []Edit, want string) {
	t.Helper()
	after, refusal := PlanEdits([]byte(before), edits)
	if refusal != nil {
		t.Fatalf("refused: %v", refusal)
	}
	if string(after) != want {
		t.Fatalf("got  %q\nwant %q", after, want)
	}
}

const fiveLines = "one\ntwo\nthree\nfour\nfive\n"

func TestLineEditsThatApply(t *testing.T) {
	for _, c := range []struct {
		name, before string
		edits        []Edit
		after        string
	}{
		{"a range", fiveLines, []Edit{byLine(2, 3, "two", "2\n3")}, "one\n2\n3\nfour\nfive\n"},
		{"a closing newline is not doubled", fiveLines, []Edit{byLine(2, 2, "two", "TWO\n")}, "one\nTWO\nthree\nfour\nfive\n"},
		{"only one closing newline is taken off", "a\nb\n", []Edit{byLine(1, 1, "a", "x\n\n")}, "x\n\nb\n"},
		{"removal", fiveLines, []Edit{byLine(2, 3, "two", "")}, "one\nfour\nfive\n"},
		{"removal of the last lines", fiveLines, []Edit{byLine(4, 5, "four", "")}, "one\ntwo\nthree\n"},
		{"removal of a last line without newline", "a\nb", []Edit{byLine(2, 2, "b", "")}, "a\n"},
		{"removal of everything", "a\nb\n", []Edit{byLine(1, 2, "a", "")}, ""},
		{"one blank line", "a\nb\nc\n", []Edit{byLine(2, 2, "b", "\n")}, "a\n\nc\n"},
		{"one blank line at an open end", "a\nb", []Edit{byLine(2, 2, "b", "\n")}, "a\n\n"},
		{"the last line keeps having no newline", "a\nb", []Edit{byLine(2, 2, "b", "B")}, "a\nB"},
		{"nor does text's own newline give it one", "a\nb", []Edit{byLine(2, 2, "b", "B\nC\n")}, "a\nB\nC"},
		{"insert before", fiveLines, []Edit{byLine(2, 1, "two", "new")}, "one\nnew\ntwo\nthree\nfour\nfive\n"},
		{"insert before the first line", "a\r\nb\r\n", []Edit{byLine(1, 0, "a", "new\n")}, "new\r\na\r\nb\r\n"},
		{"insert at the end", fiveLines, []Edit{byLine(6, 5, "", "six")}, fiveLines + "six\n"},
		{"insert at an open end", "a\nb\nc", []Edit{byLine(4, 3, "", "X")}, "a\nb\nc\nX"},
		{"insert a blank line at an open end", "a", []Edit{byLine(2, 1, "", "\n")}, "a\n\n"},
		{"insert into an empty file", "", []Edit{byLine(1, 0, "", "x\ny")}, "x\ny\n"},
		{"insert into a file that is a byte order mark", BOM, []Edit{byLine(1, 0, "", "x")}, BOM + "x\n"},
		{"inserts at one place in the order given", "a\nb\n", []Edit{byLine(2, 1, "b", "1"), byLine(2, 1, "b", "2"), byLine(2, 1, "b", "3")}, "a\n1\n2\n3\nb\n"},
		{"inserts at an open end in the order given", "a", []Edit{byLine(2, 1, "", "1"), byLine(2, 1, "", "2")}, "a\n1\n2"},
		{"inserts that touch a range", "a\nb\nc\n", []Edit{byLine(2, 2, "b", "B"), byLine(3, 2, "c", "after"), byLine(2, 1, "b", "before")}, "a\nbefore\nB\nafter\nc\n"},
		{"removal of the last line and an insert behind it", "a\nb", []Edit{byLine(3, 2, "", "X"), byLine(2, 2, "b", "")}, "a\nX"},
		{"CRLF lines get CRLF", "one\r\ntwo\r\nthree\r\n", []Edit{byLine(2, 2, "two", "2\n2b")}, "one\r\n2\r\n2b\r\nthree\r\n"},
		{"LF lines get LF", "one\ntwo\n", []Edit{byLine(2, 2, "two", "2\r\n2b\r\n")}, "one\n2\n2b\n"},
		{"each line its own newline", "a\r\nb\nc\r\n", []Edit{byLine(1, 3, "a", "1\n2\n3")}, "1\r\n2\n3\r\n"},
		{"an insert takes the newline of the line before", "a\r\nb\nc\n", []Edit{byLine(2, 1, "b", "x\ny")}, "a\r\nx\r\ny\r\nb\nc\n"},
		{"touching ranges", fiveLines, []Edit{byLine(1, 2, "one", "1\n2"), byLine(3, 4, "three", "3\n4")}, "1\n2\n3\n4\nfive\n"},
		{"numbers mean the file as read", fiveLines, []Edit{byLine(1, 1, "one", "1a\n1b\n1c"), byLine(5, 5, "five", "FIVE")}, "1a\n1b\n1c\ntwo\nthree\nfour\nFIVE\n"},
		{"a repeat that was there before", "f {\n  if x {\n  }\n  }\n}\n", []Edit{byLine(2, 3, "  if x {", "  if y {\n  }")}, "f {\n  if y {\n  }\n  }\n}\n"},
		{"a repeat of brackets alone", "a\nb\n}\n", []Edit{byLine(2, 2, "b", "B\n}")}, "a\nB\n}\n}\n"},
		{"a repeat by an insert", "a\nb\n", []Edit{byLine(1, 0, "a", "a")}, "a\na\nb\n"},
		{"the way through a repeat", "<s>\n<p>\n</s>\n", []Edit{byLine(2, 3, "<p>", "<p2>\n</s>")}, "<s>\n<p2>\n</s>\n"},
		{"the way through to having it twice", "<s>\n<p>\n</s>\n", []Edit{byLine(2, 3, "<p>", "<p2>\n</s>\n</s>")}, "<s>\n<p2>\n</s>\n</s>\n"},
		{"two lines change places", "a\nb\n", []Edit{byLine(1, 1, "a", "b"), byLine(2, 2, "b", "a")}, "b\na\n"},
		{"other separators end no line", "a\u2028x\nb\u0085\fy\nc\n", []Edit{byLine(3, 3, "c", "C")}, "a\u2028x\nb\u0085\fy\nC\n"},
		{"the byte order mark is not part of line 1", BOM + "# T\r\nx\r\n", []Edit{byLine(1, 1, "# T", "# U")}, BOM + "# U\r\nx\r\n"},
		{"an anchor with its newline", "a\r\nb\r\n", []Edit{byLine(2, 2, "b\r\n", "B")}, "a\r\nB\r\n"},
	} {
		t.Run(c.name, func(t *testing.T) { applies(t, c.before, c.edits, c.after) })
	}
}

func TestEditsThatAreRefused(t *testing.T) {
	long := strings.Repeat("word ", 200)
	for _, c := range []struct {
		name, before string
		edits        []Edit
		code         call.Code
		told         []string // patterns that the text matches
	}{
		{"no edits", "x", nil, call.InvalidArguments, []string{`edits`}},
		{"an edit of no kind", "x", []Edit{{}}, call.InvalidArguments, []string{`edits\[0\]`, `find`, `startLine`}},
		{"no replace", "x", []Edit{{Find: ptr("x")}}, call.InvalidArguments, []string{`edits\[0\]\.replace`}},
		{"no find", "x", []Edit{{Replace: ptr("x")}}, call.InvalidArguments, []string{`edits\[0\]\.find`}},
		{"no anchor", "x", []Edit{{StartLine: ptr(1), EndLine: ptr(1), Text: ptr("")}}, call.InvalidArguments, []string{`edits\[0\]\.anchor`}},
		{"line 0", "x", []Edit{byLine(0, 0, "", "y")}, call.InvalidArguments, []string{`startLine`, `\b0\b`}},
		{"an end before the insert", "x\ny\nz\n", []Edit{byLine(3, 1, "z", "y")}, call.InvalidArguments, []string{`endLine`, `\b1\b`}},
		{"expectedMatches without all", "x", []Edit{{Find: ptr("x"), Replace: ptr("y"), ExpectedMatches: ptr(1)}}, call.InvalidArguments, []string{`expectedMatches`, `all`}},
		{"both kinds in one call", "one\ntwo\n", []Edit{byText("one", "1"), byLine(2, 2, "two", "2")}, call.MixedEditKinds, []string{`^Nothing was changed`, `edit 1 is by text`, `edit 2 by line`}},
		{"both kinds in one edit", "one\n", []Edit{{Find: ptr("one"), Replace: ptr(""), StartLine: ptr(1)}}, call.MixedEditKinds, []string{`both`}},
		{"an empty find", "abc", []Edit{byText("", "b")}, call.EmptyFind, []string{`edits\[0\]`}},
		{"not UTF-8", "const x = 1; // \xe9\n", []Edit{byText("x", "y")}, call.NotText, []string{`\b16\b`, `0xE9`, `run_code`}},
		{"U+0000 after a byte order mark", BOM + "a\x00", []Edit{byText("x", "y")}, call.NotText, []string{`\b4\b`, `U\+0000`}},
		{"several matches", "pad\nk = v\npad\nk = v\n", []Edit{byText("k = v", "k = w")}, call.TextNotUnique, []string{`2 times`, `\b2\b.*\b4\b`, `all: true`}},
		{"overlapping starts", "x = 1\nx = 1\nx = 1\n", []Edit{byText("x = 1\nx = 1", "z")}, call.TextNotUnique, []string{`2 times`, `lines 1, 2`}},
		{"another count", "a a a\n", []Edit{{Find: ptr("a"), Replace: ptr("b"), All: ptr(true), ExpectedMatches: ptr(2)}}, call.TextNotUnique, []string{`\b3\b`, `\b2\b`}},
		{"nothing, whatever was expected", "a\n", []Edit{{Find: ptr("z"), Replace: ptr("b"), All: ptr(true), ExpectedMatches: ptr(2)}}, call.TextNotFound, nil},
		{"excerpts that share text", "one two three\n", []Edit{byText("one two", "1"), byText("two three", "2")}, call.RangesOverlap, []string{`Nothing was changed: edits 1 and 2`, `line 1`}},
		{"the same excerpt twice", "one\n", []Edit{byText("one", "1"), byText("one", "2")}, call.RangesOverlap, nil},
		{"ranges that share a line, before any anchor", fiveLines, []Edit{byLine(2, 4, "wrong", "x"), byLine(4, 5, "wrong", "y")}, call.RangesOverlap, []string{`lines 2 to 4`, `lines 4 to 5`}},
		{"ranges that share a line, before the file's end", fiveLines, []Edit{byLine(2, 40, "two", "x"), byLine(4, 50, "four", "y")}, call.RangesOverlap, nil},
		{"an insert within a range", fiveLines, []Edit{byLine(2, 4, "two", "x"), byLine(3, 2, "three", "y")}, call.RangesOverlap, []string{`insert before line 3`}},
		{"a range past the end", fiveLines, []Edit{byLine(3, 9, "three", "x")}, call.RangeOutOfFile, []string{`\b5 lines\b`, `"startLine": 6, "endLine": 5`}},
		{"a range past the end, before any anchor", fiveLines, []Edit{byLine(1, 1, "wrong", "x"), byLine(9, 9, "x", "x")}, call.RangeOutOfFile, []string{`\b5\b`}},
		{"an insert past the end", "a\n", []Edit{byLine(3, 2, "", "x")}, call.RangeOutOfFile, []string{`\b1 line\b`}},
		{"a range of an empty file", "", []Edit{byLine(1, 1, "", "x")}, call.RangeOutOfFile, []string{`\b0 lines\b`, `"startLine": 1, "endLine": 0`}},
		{"a moved anchor", fiveLines, []Edit{byLine(2, 2, "four", "x")}, call.AnchorMoved, []string{`line 4 instead`, `Line 2 is now:\n2\ttwo`}},
		{"an anchor in two places", "x\na\nb\na\n", []Edit{byLine(1, 1, "a", "z")}, call.AnchorMoved, []string{`lines 2, 4 instead`}},
		{"an anchor nowhere", fiveLines, []Edit{byLine(2, 2, "nope", "x")}, call.AnchorMoved, []string{`on no line`, `two`}},
		{"an anchor for the end", "a\n", []Edit{byLine(2, 1, "a", "x")}, call.AnchorMoved, []string{`anchor is ""`}},
		{"the range that a moved anchor comes to", fiveLines, []Edit{byLine(1, 2, "three", "x")}, call.AnchorMoved, []string{`line 3 instead; if the range moved with it: \{"startLine": 3, "endLine": 4\}`}},
		{"the anchor of an insert is the line before", fiveLines, []Edit{byLine(3, 2, "two", "x")}, call.AnchorMoved, []string{`line 2 instead, before the insert; an insert's anchor is the line behind it\. Line 3 is now:\n3\tthree`}},
		{"an anchor nearly there and wholly elsewhere", "  }\n}\n", []Edit{byLine(1, 1, "}", "x")}, call.AnchorMoved, []string{`not exactly the text of line 1.*The anchor's very text is on line 2\. Line 1 is:`}},
		{"an anchor that lost its blanks", "a  \n", []Edit{byLine(1, 1, "a", "x")}, call.AnchorMoved, []string{`not exactly.*line 1 of the file ends in 2 spaces where anchor has none`}},
		{"an anchor of other indentation", "f\n\tx := 1\n", []Edit{byLine(2, 2, "    x := 1", "y")}, call.AnchorMoved, []string{`not exactly the text of line 2`, `only in indentation`, `1 tab where anchor has 4 spaces`}},
		{"an anchor with curly quotes there", "say “x”\n", []Edit{byLine(1, 1, `say "x"`, "y")}, call.AnchorMoved, []string{`U\+201C`, `U\+201D`}},
		{"an anchor with its number", "one\ntwo\n", []Edit{byLine(2, 2, "2\ttwo", "y")}, call.AnchorMoved, []string{`number<TAB>`}},
		{"an anchor of several lines", "one\ntwo\n", []Edit{byLine(1, 2, "one\ntwo", "y")}, call.AnchorMoved, []string{`one line`}},
		{"an anchor elsewhere but for blanks", "a\nb\n  c\n", []Edit{byLine(1, 1, "c", "y")}, call.AnchorMoved, []string{`line 3 differs from it only in indentation`}},
		{"the last line as anchor", fiveLines, []Edit{byLine(2, 4, "four", "x")}, call.AnchorIsLastLine, []string{`line 4`, `2\ttwo`}},
		{"the next line retyped", "<s>\n<p>\n</s>\n", []Edit{byLine(2, 2, "<p>", "<p2>\n</s>")}, call.RepeatsNextLine, []string{`Line 3`, `"startLine": 2, "endLine": 3`}},
		{"the next line retyped in one of several edits", "<s>\n<p>\n</s>\n", []Edit{byLine(1, 1, "<s>", "<t>"), byLine(2, 2, "<p>", "<p2>\n</s>")}, call.RepeatsNextLine, []string{`^Nothing was changed.*Edit 2 of 2 \(repeats_next_line\): send \{"startLine": 2, "endLine": 3\} with the same anchor and text`}},
		{"a quote in the anchor and the next line retyped", "<s>\n“p”\n</s>\n", []Edit{byLine(2, 2, `"p"`, "<p2>\n</s>")}, call.AnchorMoved, []string{`U\+201C.*Besides \(repeats_next_line\): send \{"startLine": 2, "endLine": 3\} with line 2's text as anchor`}},
		{"the last line as anchor and the next line retyped", fiveLines, []Edit{byLine(2, 3, "three", "2\nfour")}, call.AnchorIsLastLine, []string{`Besides \(repeats_next_line\): send \{"startLine": 2, "endLine": 4\}`}},
		{"a moved range and the next line retyped", fiveLines, []Edit{byLine(1, 1, "three", "3\nfour")}, call.AnchorMoved, []string{`"startLine": 3, "endLine": 3`, `Besides \(repeats_next_line\): send \{"startLine": 3, "endLine": 4\}`}},
		{"ranges, anchors and repeats are told together", fiveLines, []Edit{byLine(1, 1, "nope", "1"), byLine(2, 2, "two", "2\nthree"), byLine(4, 9, "four", "x")}, call.RangeOutOfFile, []string{`Edit 3 of 3 \(range_out_of_file\): .*"startLine": 4, "endLine": 5.*Edit 1 of 3 \(anchor_moved\).*Edit 2 of 3 \(repeats_next_line\)`}},
		{"a range past the end whose anchor is in the file", fiveLines, []Edit{byLine(8, 9, "three", "x")}, call.RangeOutOfFile, []string{`\b5 lines\b.*"startLine": 3, "endLine": 4`}},
		{"of many that fail only some are told", strings.Repeat("a\n", 9), []Edit{byLine(1, 1, "b", "x"), byLine(2, 2, "b", "x"), byLine(3, 3, "b", "x"), byLine(4, 4, "b", "x"), byLine(5, 5, "b", "x"), byLine(6, 6, "b", "x")}, call.AnchorMoved, []string{`Edit 5 of 6 .*The other edits were not all looked at\.$`}},
		{"excerpts that share text beside one that is not there", "one two three\n", []Edit{byText("one two", "1"), byText("two three", "2"), byText("nope", "3")}, call.TextNotFound, []string{`Edit 3 of 3 \(text_not_found\).*ranges_overlap: edits 1 and 2 replace the same text`}},
		{"no change by text", "x\n", []Edit{byText("x", "x")}, call.NoChange, nil},
		{"no change by line", "x\r\n", []Edit{byLine(1, 1, "x", "x\n")}, call.NoChange, []string{`run_code`}},
		{"an insert of nothing", "x\n", []Edit{byLine(1, 0, "x", "")}, call.NoChange, nil},
		{"one bad edit of several", "one\ntwo\n", []Edit{byText("one", "1"), byText("nope", "2")}, call.TextNotFound, []string{`Edit 2 of 2`}},
		{"several bad edits are told together", "one two\none\n", []Edit{byText("nope", "1"), byText("one", "2")}, call.TextNotFound, []string{`Edit 1 of 2 \(text_not_found\)`, `Edit 2 of 2 \(text_not_unique\)`}},
		{"where the first line is", "alpha\nbeta\ngamma\nbeta\nend\n", []Edit{byText("beta\nDELTA", "x")}, call.TextNotFound, []string{`lines 2, 4`, `line 3, column 1: there the file has g \(U\+0067\) where find has D \(U\+0044\)`}},
		{"where the end agrees", "alpha\nbeta two\ngamma\n", []Edit{byText("beta\ngamma\n", "x")}, call.TextNotFound, []string{`column 5: there the file has 1 space where find has 1 newline\..*\n2\tbeta two\n3\tgamma$`}},
		{"where the end alone agrees", "alpha\nwords that stayed\n", []Edit{byText("zzz words that stayed", "x")}, call.TextNotFound, []string{`agrees with the end of find from line 2, column 1 on: before that the file has 1 newline where find has 1 space\.`, `\n2\twords that stayed$`}},
		{"where another line is", "alpha\nbeta\n", []Edit{byText("nowhere\nbeta", "x")}, call.TextNotFound, []string{`its line 2 is on line 2`}},
		{"indentation", "f\n\tx := 1\n", []Edit{byText("    x := 1", "y")}, call.TextNotFound, []string{`only in indentation`, `\n2\t\tx := 1`}},
		{"trailing blanks", "a  \nb\n", []Edit{byText("a\nb", "y")}, call.TextNotFound, []string{`only in trailing blanks`, `line 1 of the file ends in 2 spaces where find has none`}},
		{"trailing blanks of several lines", "a \nb\nc \nd\n", []Edit{byText("a\nb\nc\n", "y")}, call.TextNotFound, []string{`not in the file\. It differs only in trailing blanks: lines 1 and 3 of the file end in 1 space where find has none\. .* begin on line 1\. The file has now, after number<TAB>:\n1\ta \n2\tb\n3\tc $`}},
		{"trailing blanks and indentation", "\ta \nb\n", []Edit{byText("    a\nb", "y")}, call.TextNotFound, []string{`1 tab where find has 4 spaces; line 1 of the file ends in 1 space where find has none`}},
		{"a cause says more than where the first line is not", "f\n\tx\n\ty\n", []Edit{byText("  x\n  y", "z")}, call.TextNotFound, []string{`^Nothing was changed: find is not in the file\. It differs only in indentation`}},
		{"where else the first line is, beside a cause", "a\n\tb\na\nc\n", []Edit{byText("a\n  b", "z")}, call.TextNotFound, []string{`Its first line is on lines 1, 3\. It differs only in indentation`}},
		{"trailing blanks given", "a\nb\n", []Edit{byText("a \nb", "y")}, call.TextNotFound, []string{`only in trailing blanks`}},
		{"curly quotes", "say “x”\n", []Edit{byText(`"x"`, "y")}, call.TextNotFound, []string{`U\+201C`, `quotes`}},
		{"a dash", "a – b\n", []Edit{byText("a - b", "y")}, call.TextNotFound, []string{`U\+2013`}},
		{"an odd blank", "a\u00a0b\n", []Edit{byText("a b", "y")}, call.TextNotFound, []string{`U\+00A0`}},
		{"an invisible character", "a\u200bb\n", []Edit{byText("ab", "y")}, call.TextNotFound, []string{`U\+200B`}},
		{"an ellipsis", "wait… now\n", []Edit{byText("wait... now", "y")}, call.TextNotFound, []string{`U\+2026`}},
		{"a part of an ellipsis", "wait…\n", []Edit{byText("wait.", "y")}, call.TextNotFound, []string{`column 5: there the file has … \(U\+2026\) where find has \. `}},
		{"decomposed there", "cafe\u0301\n", []Edit{byText("caf\u00e9", "y")}, call.TextNotFound, []string{`U\+0301`, `composed`}},
		{"decomposed here", "caf\u00e9\n", []Edit{byText("cafe\u0301", "y")}, call.TextNotFound, []string{`U\+00E9`, `composed`}},
		{"line numbers", "one\ntwo\n", []Edit{byText("2\ttwo", "TWO")}, call.TextNotFound, []string{`number<TAB>`, `line 2`}},
		{"line numbers of several lines", "a\none\n\ntwo\n", []Edit{byText("2\tone\n3\t\n4\ttwo\n", "TWO")}, call.TextNotFound, []string{`number<TAB>`, `line 2`}},
		{"already there", "one\nTWO\n", []Edit{byText("two", "TWO")}, call.TextNotFound, []string{`already`, `line 2`, `case`}},
		{"case", "One\n", []Edit{byText("one", "y")}, call.TextNotFound, []string{`upper and lower case`}},
		{"line breaks", "a b\nc d\n", []Edit{byText("a b c d", "y")}, call.TextNotFound, []string{`blanks and line breaks`}},
		{"escaped twice", "a\n\"b\"\n", []Edit{byText(`a\n\"b\"`, "y")}, call.TextNotFound, []string{`escaped`}},
		{"entities", "a < b\n", []Edit{byText("a &lt; b", "y")}, call.TextNotFound, []string{`entities`}},
		{"indentation and a word", "f {\n\tx := 1\n\ty := 2\n}\n", []Edit{byText("    x := 1\n    y := 3", "z")}, call.TextNotFound, []string{`begins on line 2 and agrees, blanks at both ends of lines aside, up to line 3, column 7: there the file has 2 .* where find has 3 `, `\n3\t\ty := 2`}},
		{"blanks alone", "a\n", []Edit{byText("\n\n", "z")}, call.TextNotFound, nil},
		{"nothing near", "abc\n", []Edit{byText("zzz", "yyy")}, call.TextNotFound, []string{`search_files or read_file`}},
		{"an empty file", "", []Edit{byText("a", "b")}, call.TextNotFound, []string{`empty`}},
		{"a long line is shown where it differs", long + "here it ends\n", []Edit{byText(long+"here it stops", "x")}, call.TextNotFound, []string{`column 1009`, `characters before\].*here it ends`}},
		{"the byte order mark is never matched", BOM + "a\n", []Edit{byText(BOM+"a", "b")}, call.TextNotFound, []string{`U\+FEFF`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := []byte(c.before)
			after, refusal := PlanEdits(before, c.edits)
			if refusal == nil {
				t.Fatalf("not refused; gave %q", after)
			}
			if refusal.Code != c.code {
				t.Fatalf("code %s, want %s: %s", refusal.Code, c.code, refusal.Text)
			}
			for _, pattern := range c.told {
				if !regexp.MustCompile("(?s)" + pattern).MatchString(refusal.Text) {
					t.Errorf("text lacks %s:\n%s", pattern, refusal.Text)
				}
			}
			if after != nil || string(before) != c.before {
				t.Error("a refused edit changed something")
			}
		})
	}
}
