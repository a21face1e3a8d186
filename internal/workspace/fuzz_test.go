package workspace

import (
	"testing"
	"unicode/utf8"
)

func FuzzSplit(f *testing.F) {
	f.Fuzz(func(t *testing.T, b []byte) {
		d := Split(b)
		if got := d.Bytes(); string(got) != string(b) {
			t.Fatalf("joined again %q, was %q", got, b)
		}
		at := 0
		for i, l := range d.Lines {
			ending := string(d.Body[l.End:l.Next])
			if l.Start != at || l.End < l.Start || (ending != "\n" && ending != "\r\n" && (ending != "" || i != len(d.Lines)-1)) {
				t.Fatalf("line %d of %q is %+v", i+1, b, l)
			}
			at = l.Next
		}
		if at != len(d.Body) {
			t.Fatalf("lines end at %d of %d", at, len(d.Body))
		}
		checkScanner(t, string(b))
		if bad := FirstBadByte(b); (bad < 0) != IsText(b) {
			t.Fatalf("first bad byte %d, text %v", bad, IsText(b))
		}
		checkReadingOn(t, Limits{ReadChars: 5, ReadLines: 3}, string(b))
	})
}

func FuzzPath(f *testing.F) {
	f.Fuzz(func(t *testing.T, s string) {
		checkPath(t, s)
		kept, ignored := FoundPaths([]string{s, "a", "caf\u00e9"})
		if len(kept)+len(ignored) != 3 && s != "a" && s != "caf\u00e9" {
			t.Fatalf("kept %q, ignored %+v", kept, ignored)
		}
		for _, i := range ignored {
			if !utf8.ValidString(i.Path) || i.Reason == "" {
				t.Fatalf("ignored %+v", i)
			}
		}
		tree := NewTree([]Entry{{Path: "a"}, {Path: "b/c"}, {Path: "Caf\u00e9/menu.md"}})
		if p, refusal := Path(s); refusal == nil {
			_ = tree.CheckNames([]string{p, "n"})
			_, _ = tree.Find(p)
		}
		if g, refusal := newGlob(s, "b"); refusal == nil {
			g.filter(tree.All())
		}
	})
}

func FuzzSearch(f *testing.F) {
	f.Fuzz(func(t *testing.T, text, query string, contextLines uint8, ignoreCase bool) {
		if query == "" || !utf8.ValidString(query) || !IsText([]byte(text)) || len(text)*len(query) > 1<<16 {
			return
		}
		checkSearch(t, text, SearchRequest{Queries: []string{query}, ContextLines: int(contextLines % 4), IgnoreCase: ignoreCase})
	})
}
