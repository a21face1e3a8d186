package workspace

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"pgregory.net/rapid"

	"treeline/internal/call"
)

// drawnFiles draws files with every kind of newline, with characters that are no newlines, and with byte order marks.
func drawnFiles() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		parts := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "a b", "é", "\r.", "\f", "\u2028", "\u0085", "\n", "\r\n", "\n", "\r\n"}), 0, 30).Draw(t, "parts")
		file := strings.Join(parts, "")
		if rapid.IntRange(0, 4).Draw(t, "mark") == 0 {
			file = BOM + file
		}
		return file
	})
}

// texts gives what Split shows.
func texts(file string) []string {
	d := Split([]byte(file))
	list := make([]string, len(d.Lines))
	for i := range d.Lines {
		list[i] = string(d.Text(i + 1))
	}
	return list
}

func TestAnEditAtALineReplacesWhatSplitShowsThere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		file := drawnFiles().Draw(t, "file")
		lines := texts(file)
		start := rapid.IntRange(1, len(lines)+1).Draw(t, "start")
		end := start - 1
		if start <= len(lines) {
			end = rapid.IntRange(start-1, len(lines)).Draw(t, "end")
		}
		fresh := rapid.SliceOfN(rapid.SampledFrom([]string{"new", "x y", "", "}"}), 0, 4).Draw(t, "lines")
		text := strings.Join(fresh, "\n")
		if len(fresh) > 0 && (text == "" || rapid.Bool().Draw(t, "closed")) {
			text += "\n"
		} else if strings.HasSuffix(text, "\n") { // a blank last line is written with its newline
			text += "\n"
		}
		anchor := ""
		if start <= len(lines) {
			anchor = lines[start-1]
		}
		want := slices.Concat(lines[:start-1], fresh, lines[end:])
		after, refusal := PlanEdits([]byte(file), []Edit{byLine(start, end, anchor, text)})
		if refusal != nil {
			if refusal.Code == call.NoChange && (slices.Equal(want, lines)) {
				return
			}
			t.Fatalf("refused: %v", refusal)
		}
		if got := texts(string(after)); !slices.Equal(got, want) {
			t.Fatalf("got  %q\nwant %q", got, want)
		}
		if strings.HasPrefix(file, BOM) != bytes.HasPrefix(after, []byte(BOM)) {
			t.Fatal("the byte order mark did not stay")
		}
		sameOutside(t, file, string(after), start, end)
	})
}

// sameOutside checks that the bytes before and behind a range are the same, but for the newline that an insert behind an
// open last line adds to it.
func sameOutside(t *rapid.T, before, after string, start, end int) {
	d := Split([]byte(before))
	mark := strings.TrimSuffix(before, string(d.Body))
	head, tail := mark+string(d.Body), ""
	if start <= len(d.Lines) {
		head = mark + string(d.Body[:d.Lines[start-1].Start])
	}
	if end < len(d.Lines) {
		tail = string(d.Body[max(0, d.Lines[end].Start):])
	}
	if !strings.HasPrefix(after, head) || !strings.HasSuffix(after, tail) || len(after) < len(head)+len(tail) {
		t.Fatalf("bytes outside lines %d to %d changed: %q became %q", start, end, before, after)
	}
}

func TestEditsAtOnceEqualEditsOneByOneFromTheBottom(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		file := drawnFiles().Draw(t, "file")
		lines := texts(file)
		var edits []Edit
		for at := 1; at <= len(lines)+1; {
			kind := rapid.IntRange(0, 3).Draw(t, "kind")
			anchor := ""
			if at <= len(lines) {
				anchor = lines[at-1]
			}
			text := rapid.SampledFrom([]string{"", "new%d", "new%d\nmore%d", "\n", "new%d\n\n"}).Draw(t, "text")
			text = strings.ReplaceAll(text, "%d", fmt.Sprint(len(edits)))
			switch {
			case kind == 0:
				edits = append(edits, byLine(at, at-1, anchor, text))
			case kind == 1 && at <= len(lines):
				end := min(len(lines), at+rapid.IntRange(0, 2).Draw(t, "more"))
				edits = append(edits, byLine(at, end, anchor, text))
				at = end + 1
			default:
				at++
			}
		}
		if len(edits) == 0 {
			return
		}
		atOnce, refusal := PlanEdits([]byte(file), edits)
		if refusal != nil && refusal.Code != call.NoChange {
			t.Fatalf("refused: %v", refusal)
		}
		if refusal != nil {
			atOnce = []byte(file)
		}
		oneByOne := []byte(file)
		for _, e := range slices.Backward(edits) {
			// Where an insert has come already, or the last line has gone, the line there is another one.
			now := append(texts(string(oneByOne)), "")
			e.Anchor = &now[*e.StartLine-1]
			after, refusal := PlanEdits(oneByOne, []Edit{e})
			if refusal != nil && refusal.Code != call.NoChange {
				t.Fatalf("refused alone: %v", refusal)
			}
			if refusal == nil {
				oneByOne = after
			}
		}
		// One by one, a file can lose the only line that says which newline its new lines take.
		same := slices.Equal(texts(string(atOnce)), texts(string(oneByOne)))
		if !same || !strings.Contains(file, "\r\n") && !bytes.Equal(atOnce, oneByOne) {
			t.Fatalf("at once    %q\none by one %q", atOnce, oneByOne)
		}
	})
}

func TestTextEditsDoAsTheirRuleSays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "ab", "é", "\n"}), 0, 30)
		file := strings.Join(parts.Draw(t, "file"), "")
		find := strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "\n", "é"}), 1, 4).Draw(t, "find"), "")
		replace := strings.Join(parts.Draw(t, "replace"), "")
		newline := rapid.SampledFrom([]string{"\n", "\r\n"}).Draw(t, "newline")
		all := rapid.Bool().Draw(t, "all")
		written := strings.ReplaceAll(file, "\n", newline)

		edit := byText(find, replace)
		starts := 0
		for i := range file {
			if strings.HasPrefix(file[i:], find) {
				starts++
			}
		}
		want := strings.Replace(file, find, replace, 1)
		if all {
			edit.All, want = ptr(true), strings.ReplaceAll(file, find, replace)
		}
		if !strings.Contains(file, "\n") { // a file without newlines has none to take
			newline = "\n"
		}
		want = strings.ReplaceAll(want, "\n", newline)
		var code call.Code
		switch {
		case starts == 0:
			code = call.TextNotFound
		case starts > 1 && !all:
			code = call.TextNotUnique
		case want == written:
			code = call.NoChange
		}
		after, refusal := PlanEdits([]byte(written), []Edit{edit})
		switch {
		case refusal == nil && (code != "" || string(after) != want):
			t.Fatalf("got %q, want %q %s", after, want, code)
		case refusal != nil && refusal.Code != code:
			t.Fatalf("refused: %v, want %q", refusal, code)
		}
	})
}

// A find of blanks, quotes and numbers exercises every guess at what was meant.
func TestDiagnosisNeverChangesOrLosesAnything(t *testing.T) {
	parts := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "B", " ", "\t", "\n", "\r\n", "\r", "“", `"`, "é", "e\u0301", "\u200b", "\u00a0", "…", "...", "1\t", `\n`, "&lt;", BOM}), 0, 20)
	rapid.Check(t, func(t *rapid.T) {
		file := strings.Join(parts.Draw(t, "file"), "")
		find := strings.Join(parts.Draw(t, "find"), "")
		before := []byte(file)
		for _, e := range []Edit{byText(find, "z"), byLine(1, 1, find, "z")} {
			_, refusal := PlanEdits(before, []Edit{e})
			if string(before) != file {
				t.Fatal("the file was changed")
			}
			if refusal != nil && refusal.Text == "" {
				t.Fatalf("%s without a word", refusal.Code)
			}
		}
	})
}

// hard gives inputs of 4 MiB on which careless algorithms need quadratic time.
func hard() map[string]struct {
	file  string
	edits []Edit
} {
	a := strings.Repeat("a", 4*mib)
	random := rand.New(rand.NewPCG(3, 4))
	var noise strings.Builder
	for noise.Len() < 4*mib {
		noise.WriteString(string(rune(0x61 + random.IntN(0x500))))
	}
	many := func(e Edit) []Edit { return slices.Repeat([]Edit{e}, 20) }
	return map[string]struct {
		file  string
		edits []Edit
	}{
		"one line, nothing near":        {a, many(byText("b", "c"))},
		"one line, nearly all of it":    {a, many(byText(a[:mib]+"b", "c"))},
		"one line, many places":         {a, many(byText(a[:mib], "c"))},
		"one line, all":                 {a, many(byTextAll("a", "bb"))},
		"periodic":                      {strings.Repeat("ab", 2*mib), many(byText(strings.Repeat("ab", 100_000)+"c", "d"))},
		"blanks":                        {strings.Repeat(" ", 4*mib), many(byText(strings.Repeat("\t", 1000), "c"))},
		"blank lines":                   {strings.Repeat(" \n", 2*mib), many(byText(strings.Repeat("\n", 1000), "c"))},
		"CRLF":                          {strings.Repeat("a\r\n", mib), many(byText("a\n\na", "c"))},
		"marks on one letter":           {"e" + strings.Repeat("\u0301", 2*mib), many(byText("é", "c"))},
		"letters with a few marks each": {strings.Repeat("e\u0323\u0301\u0302\u0331", 4*mib/9), many(byText("é", "c"))},
		"syllables in their parts":      {strings.Repeat("\u1100\u1161\u11a8", 4*mib/9), many(byText("가", "c"))},
		"a long excerpt in odd letters": {noise.String(), many(byText(noise.String()[:mib/4-10]+"?", "c"))},
		"letters of many kinds":         {noise.String(), many(byText(noise.String()[:200]+"?", "c"))},
		"indented, the fit elsewhere":   {strings.Repeat("ab ", mib), many(byText("  ab ", "c"))},
		"numbers to leave out":          {a, many(byText(strings.Repeat("1\tb\n", 100_000), "c"))},
		"anchors of one long line":      {a, many(byLine(2, 1, "b", "c"))},
		"an anchor of the long line":    {noise.String(), many(byLine(1, 0, "é", "c"))},
		"a long anchor":                 {noise.String() + "\nb", many(byLine(1, 0, strings.ToUpper(noise.String()), "c"))},
		"anchors among many lines":      {strings.Repeat("a\n", 2*mib), many(byLine(1, 0, "A b", "c"))},
		"as many lines as there can be": {strings.Repeat("\n", 4*mib), many(byLine(4*mib, 4*mib-1, "b", "c"))},
	}
}

func TestEditsOfLargeFilesTakeLinearTime(t *testing.T) {
	for name, c := range hard() {
		t.Run(name, func(t *testing.T) {
			before := []byte(c.file)
			begin := processorTime(t)
			_, refusal := PlanEdits(before, c.edits)
			took := processorTime(t) - begin
			t.Logf("%s: %v", name, took)
			if took > 3*time.Second {
				t.Errorf("took %v", took)
			}
			if refusal == nil || len(refusal.Text) > 64<<10 {
				t.Errorf("refusal %.100v", refusal)
			}
		})
	}
}

// processorTime is what this process has used so far: other work on the machine does not count.
func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		t.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

func FuzzPlanEdits(f *testing.F) {
	f.Add("one\ntwo\n", "two", "TWO", false, 2, 2)
	f.Add("a\r\nb", "a\nb", "c\nd\ne", true, 1, 0)
	f.Add(BOM+"say “x”\n", `"x"`, "", false, 3, 2)
	f.Add("f\n\tx := 1\n", "2\t    x := 1", "y\n", false, 1, 9)
	f.Add("a\x00", "\xff", "\r", true, -1, -5)
	f.Fuzz(func(t *testing.T, file, given, text string, all bool, start, end int) {
		quotes := strings.Contains(file+given+text, "%") // and a refusal may quote it
		for _, e := range []Edit{{Find: &given, Replace: &text, All: &all}, byLine(start, end, given, text)} {
			before := []byte(file)
			after, refusal := PlanEdits(before, []Edit{e})
			if string(before) != file {
				t.Fatal("the file was changed")
			}
			if refusal != nil {
				if after != nil || refusal.Code == "" || refusal.Text == "" || !quotes && strings.Contains(refusal.Text, "%!") {
					t.Fatalf("refusal %+v with %q", refusal, after)
				}
				continue
			}
			if string(after) == file {
				t.Fatal("no change was let through")
			}
			if strings.HasPrefix(file, BOM) && !bytes.HasPrefix(after, []byte(BOM)) {
				t.Fatal("the byte order mark is gone")
			}
		}
	})
}

func code4MiB() []byte {
	var b bytes.Buffer
	for n := 1; b.Len() < 4*mib; n++ {
		fmt.Fprintf(&b, "\tline %d of some text that is as long as code\n", n)
	}
	return b.Bytes()
}

func BenchmarkEditByText4MiB(b *testing.B) {
	file := code4MiB()
	edits := []Edit{byText("line 40000 of some", "line forty thousand of some")}
	b.ReportAllocs()
	for b.Loop() {
		if _, r := PlanEdits(file, edits); r != nil {
			b.Fatal(r)
		}
	}
}

func BenchmarkEditByLine4MiB(b *testing.B) {
	file := code4MiB()
	edits := []Edit{byLine(40000, 40000, "\tline 40000 of some text that is as long as code", "new")}
	b.ReportAllocs()
	for b.Loop() {
		if _, r := PlanEdits(file, edits); r != nil {
			b.Fatal(r)
		}
	}
}

func BenchmarkEditNotFound4MiB(b *testing.B) {
	file := code4MiB()
	edits := []Edit{byText("    line 40000 of some", "x")}
	b.ReportAllocs()
	for b.Loop() {
		if _, r := PlanEdits(file, edits); r == nil {
			b.Fatal("found")
		}
	}
}
