package sandbox

import (
	"strings"
	"testing"
)

func TestRecorder(t *testing.T) {
	tests := []struct {
		name    string
		keep    int
		writes  []string
		want    Output
		emitted string
	}{
		{"nothing", 8, nil, Output{}, ""},
		{"less than half", 20, []string{"ab", "c"}, Output{Head: "abc", Total: 3}, "abc"},
		{"exactly all", 8, []string{"abcd", "efgh"}, Output{Head: "abcdefgh", Total: 8}, "abcdefgh"},
		{"one too many", 8, []string{"abcdefghi"}, Output{Head: "abcd", Tail: "fghi", Dropped: 1, Total: 9}, "abcdefghi"},
		{"byte by byte", 8, strings.Split("abcdefghijk", ""), Output{Head: "abcd", Tail: "hijk", Dropped: 3, Total: 11}, "abcdefghijk"},
		{"a character at the cut stays whole", 8, []string{"abc€defghi"}, Output{Head: "abc", Tail: "fghi", Dropped: 5, Total: 12}, "abc€defghi"},
		{"a character at the tail's start is left out", 8, []string{"abcd", "12345", "€xy"}, Output{Head: "abcd", Tail: "xy", Dropped: 8, Total: 14}, "abcd12345€xy"},
		{"a character in two writes", 20, []string{"a\xe2\x82", "\xacb"}, Output{Head: "a€b", Total: 5}, "a€b"},
		{"a character in four writes", 20, []string{"\xf0", "\x9f", "\x98", "\x80"}, Output{Head: "😀", Total: 4}, "😀"},
		{"bytes that are not text", 20, []string{"a\xff\xfeb"}, Output{Head: "a\uFFFD\uFFFDb", Total: 8}, "a\uFFFD\uFFFDb"},
		{"an end within a character", 20, []string{"a\xe2\x82"}, Output{Head: "a\uFFFD\uFFFD", Total: 7}, "a\uFFFD\uFFFD"},
		{"a beginning that another follows", 20, []string{"\xe2", "\xe2\x82\xac"}, Output{Head: "\uFFFD€", Total: 6}, "\uFFFD€"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var emitted strings.Builder
			r := NewRecorder(tt.keep, func(s string) { emitted.WriteString(s) })
			for _, w := range tt.writes {
				if n, err := r.Write([]byte(w)); n != len(w) || err != nil {
					t.Errorf("write: %d, %v", n, err)
				}
			}
			if err := r.Close(); err != nil {
				t.Error(err)
			}
			if got := r.Output(); got != tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
			if emitted.String() != tt.emitted {
				t.Errorf("emitted %q, want %q", emitted.String(), tt.emitted)
			}
		})
	}
}

func FuzzRecorder(f *testing.F) {
	f.Add([]byte("ab€\xffcd"), 3, 12)
	f.Fuzz(func(t *testing.T, body []byte, step, keep int) {
		step, keep = max(1, step%50), max(0, keep%100)
		var emitted strings.Builder
		r := NewRecorder(keep, func(s string) { emitted.WriteString(s) })
		for rest := body; len(rest) > 0; {
			n := min(step, len(rest))
			_, _ = r.Write(rest[:n])
			rest = rest[n:]
		}
		_ = r.Close()
		want := string([]rune(string(body)))
		out := r.Output()
		if emitted.String() != want || out.Total != int64(len(want)) {
			t.Fatalf("emitted %q, want %q", emitted.String(), want)
		}
		if !strings.HasPrefix(want, out.Head) || !strings.HasSuffix(want, out.Tail) ||
			int64(len(out.Head)+len(out.Tail))+out.Dropped != out.Total || out.Dropped > 0 && len(out.Head)+len(out.Tail) > max(keep, 8) {
			t.Fatalf("kept %+v of %q", out, want)
		}
	})
}
