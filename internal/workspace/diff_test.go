package workspace

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestDiff(t *testing.T) {
	for _, c := range []struct {
		name          string
		before, after []byte
		want          string
	}{
		{"nothing", []byte("a\n"), []byte("a\n"), ""},
		{"one line without newline", []byte("1"), []byte("2"),
			"--- a/f\n+++ b/f\n@@ -1 +1 @@\n-1\n\\ No newline at end of file\n+2\n\\ No newline at end of file\n"},
		{"created", nil, []byte("a\nb\n"), "--- /dev/null\n+++ b/f\n@@ -0,0 +1,2 @@\n+a\n+b\n"},
		{"deleted", []byte("a\n"), nil, "--- a/f\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n"},
		{"created empty", nil, []byte{}, "--- /dev/null\n+++ b/f\n"},
		{"emptied", []byte("a\n"), []byte{}, "--- a/f\n+++ b/f\n@@ -1 +0,0 @@\n-a\n"},
		{"three lines of context", []byte("1\n2\n3\n4\n5\n6\n7\n8\n9\n"), []byte("1\n2\n3\n4\nV\n6\n7\n8\n9\n"),
			"--- a/f\n+++ b/f\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+V\n 6\n 7\n 8\n"},
		{"two hunks", []byte("1\n2\n3\n4\n5\n6\n7\n8\n9\n"), []byte("A\n2\n3\n4\n5\n6\n7\n8\nB\n"),
			"--- a/f\n+++ b/f\n@@ -1,4 +1,4 @@\n-1\n+A\n 2\n 3\n 4\n@@ -6,4 +6,4 @@\n 6\n 7\n 8\n-9\n+B\n"},
		{"near changes share a hunk", []byte("1\n2\n3\n4\n5\n6\n7\n8\n"), []byte("A\n2\n3\n4\n5\n6\n7\nB\n"),
			"--- a/f\n+++ b/f\n@@ -1,8 +1,8 @@\n-1\n+A\n 2\n 3\n 4\n 5\n 6\n 7\n-8\n+B\n"},
		{"inserted", []byte("a\nb\n"), []byte("a\nx\nb\n"), "--- a/f\n+++ b/f\n@@ -1,2 +1,3 @@\n a\n+x\n b\n"},
		{"a newline at the end", []byte("a\nb"), []byte("a\nb\n"),
			"--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+b\n"},
		{"a newline of another kind", []byte("a\r\n"), []byte("a\n"), "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\r\n+a\n"},
		{"a byte order mark", []byte("a\n"), []byte(BOM + "a\n"), "--- a/f\n+++ b/f\n\\ A byte order mark was added\n"},
		{"not text", []byte("a\x00"), []byte("a"), "--- a/f\n+++ b/f\nThe file is not text: 2 bytes before, 1 byte after.\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, cut := Diff("f", c.before, c.after, 200)
			if got != c.want || cut {
				t.Fatalf("cut %v, got\n%s\nwant\n%s", cut, got, c.want)
			}
		})
	}
}

func TestDiffIsCutToItsLines(t *testing.T) {
	after := strings.Repeat("x\n", 500)
	got, cut := Diff("f", nil, []byte(after), 200)
	lines := strings.Split(got, "\n")
	if !cut || len(lines) != 200 || lines[199] != "(the diff is cut here: 304 more lines not shown)" {
		t.Fatalf("cut %v, %d lines, last %q", cut, len(lines), lines[len(lines)-1])
	}
	if got, cut := Diff("f", nil, []byte(strings.Repeat("x\n", 197)), 200); cut || strings.Count(got, "\n") != 200 {
		t.Fatalf("cut %v, %d lines", cut, strings.Count(got, "\n"))
	}
}

func TestDiffShown(t *testing.T) {
	for _, c := range []struct {
		name, diff string
		most       int
		want       string
	}{
		{"nothing", "", 3, ""},
		{"as many lines as may be", "-a\n+b\n c\n", 3, "-a\n+b\n c"},
		{"one more", "-a\n+b\n c\n d\n", 3, "-a\n+b\n c\n[cut here: the diff goes on; read_file shows the file as it is now]"},
		{"endings of CRLF", "-a\r\n+b\r\n", 3, "-a\n+b"},
		{"a lone CR before an ending", "-a\r\r\n+a\r\n", 3, "-a\r\n+a"},
		{"a lone CR without an ending", "-a\n+a\r\n\\ No newline at end of file\n", 3, "-a\n+a\r\n\\ No newline at end of file"},
		{"a diff that was cut before", "-a\n(the diff is cut here: 9 more lines not shown)", 3, "-a\n(the diff is cut here: 9 more lines not shown)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := DiffShown(c.diff, c.most); got != c.want {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

func TestDiffShowsLongLinesWhereTheyDiffer(t *testing.T) {
	long := strings.Repeat("é", 4000)
	got, cut := Diff("f", []byte(long+"one"+long), []byte(long+"two"+long), 200)
	if !cut || !strings.Contains(got, "éone") || !strings.Contains(got, "étwo") || len(got) > 6*diffLineChars {
		t.Fatalf("cut %v: %s", cut, got)
	}
}

func TestDiffOfFewChangesIsLeast(t *testing.T) {
	lines := make([]string, 5000)
	for i := range lines {
		lines[i] = fmt.Sprint(i % 700)
	}
	before := strings.Join(lines, "\n")
	lines[10], lines[4000] = "changed", "changed"
	lines = append(lines[:2000], lines[2003:]...)
	got, _ := Diff("f", []byte(before), []byte(strings.Join(lines, "\n")), 200)
	if n := strings.Count(got, "\n-") + strings.Count(got, "\n+"); n != 1+2+2+3 { // with the header's second line
		t.Fatalf("%d changed lines:\n%s", n, got)
	}
}

// linesOfText draws texts that share lines, so that diffs have much to find.
func linesOfText(alphabet ...string) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		parts := rapid.SliceOfN(rapid.SampledFrom(alphabet), 0, 40).Draw(t, "lines")
		text := strings.Join(parts, "")
		if rapid.Bool().Draw(t, "open end") {
			text = strings.TrimSuffix(text, "\n")
		}
		return text
	})
}

func TestDiffAppliedToBeforeGivesAfter(t *testing.T) {
	draw := linesOfText("a\n", "b\n", "c\r\n", "\n", "d e\n", "}\n")
	rapid.Check(t, func(t *rapid.T) {
		before, after := draw.Draw(t, "before"), draw.Draw(t, "after")
		diff, cut := Diff("f", []byte(before), []byte(after), 1000)
		if cut {
			t.Fatal("cut")
		}
		got, err := applyDiff(before, diff)
		if err != nil || got != after {
			t.Fatalf("%v: got %q, want %q, by\n%s", err, got, after, diff)
		}
	})
}

// applyDiff applies a unified diff as its format is defined, on its own terms.
func applyDiff(before, diff string) (string, error) {
	if diff == "" {
		return before, nil
	}
	old := strings.SplitAfter(before, "\n")
	if old[len(old)-1] == "" {
		old = old[:len(old)-1]
	}
	var out strings.Builder
	at := 0
	lines := strings.Split(strings.TrimSuffix(diff, "\n"), "\n")[2:]
	for i, line := range lines {
		text := line[1:] + "\n"
		if i+1 < len(lines) && lines[i+1][0] == '\\' {
			text = line[1:]
		}
		switch line[0] {
		case '@':
			from, _, _ := strings.Cut(strings.TrimPrefix(line, "@@ -"), " ")
			start, count, several := strings.Cut(from, ",")
			n, err := strconv.Atoi(start)
			if err != nil {
				return "", err
			}
			if !several || count != "0" {
				n--
			}
			for ; at < n; at++ {
				out.WriteString(old[at])
			}
		case ' ', '-':
			if at >= len(old) || old[at] != text {
				return "", fmt.Errorf("line %d of the diff does not fit: %q", i+3, line)
			}
			if at++; line[0] == ' ' {
				out.WriteString(text)
			}
		case '+':
			out.WriteString(text)
		}
	}
	for ; at < len(old); at++ {
		out.WriteString(old[at])
	}
	return out.String(), nil
}

func TestDiffOfLargeFilesIsBounded(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	file := func(distinct, size int) []byte {
		var b strings.Builder
		for b.Len() < size {
			fmt.Fprintln(&b, random.IntN(distinct))
		}
		return []byte(b.String())
	}
	for name, pair := range map[string][2][]byte{
		"unrelated":     {file(1<<60, 4*mib), file(1<<60, 4*mib)},
		"of few lines":  {file(3, 4*mib), file(3, 4*mib)},
		"of one letter": {[]byte(strings.Repeat("a\n", 2*mib)), []byte(strings.Repeat("b\n", 2*mib))},
		"of one line":   {[]byte(strings.Repeat("a", 4*mib)), []byte(strings.Repeat("a", 4*mib-1) + "b")},
	} {
		t.Run(name, func(t *testing.T) {
			begin := time.Now()
			diff, cut := Diff("f", pair[0], pair[1], 200)
			if took := time.Since(begin); took > 5*time.Second {
				t.Errorf("took %v", took)
			}
			if !cut || len(diff) > 200*(diffLineChars+100)*4 {
				t.Errorf("cut %v, %d bytes", cut, len(diff))
			}
		})
	}
}

func FuzzDiff(f *testing.F) {
	f.Add("1", "2")
	f.Add("a\nb\nc\n", "c\nb\na")
	f.Add("", "a\r\nb")
	f.Add("a\x00", "\xff")
	f.Fuzz(func(t *testing.T, before, after string) {
		diff, cut := Diff("f", []byte(before), []byte(after), 1<<20)
		if cut || !IsText([]byte(before)) || !IsText([]byte(after)) || strings.HasPrefix(before+after, BOM) || strings.HasPrefix(after, BOM) {
			return
		}
		if got, err := applyDiff(before, diff); err != nil || got != after {
			t.Fatalf("%v: got %q, want %q, by\n%s", err, got, after, diff)
		}
	})
}

func BenchmarkDiffUnrelated4MiB(b *testing.B) {
	random := rand.New(rand.NewPCG(1, 2))
	file := func() []byte {
		var b strings.Builder
		for b.Len() < 4*mib {
			fmt.Fprintf(&b, "line %d of some text that is as long as code\n", random.Int64())
		}
		return []byte(b.String())
	}
	before, after := file(), file()
	b.ReportAllocs()
	for b.Loop() {
		Diff("f", before, after, 200)
	}
}
