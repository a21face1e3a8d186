package workspace

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// benchTree is a thousand files of 5 KB of words, in which the queries of the benchmarks are rare.
func benchTree(tb testing.TB) (*Tree, ContentFunc) {
	tb.Helper()
	words := strings.Fields("the revenue of a quarter is what was sold less what came back and each table states where its figures are from, " +
		"so that a reader can follow them: <td class=\"num\">1,204.50</td> <p>Notes:</p> return nil, err")
	random := rand.New(rand.NewPCG(1, 2))
	files := map[string][]byte{}
	var entries []Entry
	for i := range 1000 {
		var b strings.Builder
		for b.Len() < 5000 {
			b.WriteString(words[random.IntN(len(words))])
			b.WriteByte(" \n"[min(random.IntN(12)/11, 1)])
		}
		if i%100 == 7 {
			b.WriteString("Grand total of Q3 margin\n")
		}
		path := fmt.Sprintf("folder%d/file%d.md", i%10, i)
		files[path] = []byte(b.String())
		entries = append(entries, NewEntry(path, files[path], 1))
	}
	return NewTree(entries), func(path string) ([]byte, error) { return files[path], nil }
}

func benchmarkSearch(b *testing.B, req SearchRequest) {
	tree, content := benchTree(b)
	limits := DefaultLimits()
	b.ReportAllocs()
	b.SetBytes(tree.Bytes())
	for b.Loop() {
		if _, _, err := tree.Search(req, limits, content); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkSearch(b *testing.B) {
	rare := []string{"Grand total", "Q3 margin", "NotInAnyOfThem", "func (s *server)", "colour: #ff8800"}
	b.Run("five literals", func(b *testing.B) { benchmarkSearch(b, SearchRequest{Queries: rare}) })
	b.Run("five literals, context", func(b *testing.B) { benchmarkSearch(b, SearchRequest{Queries: rare, ContextLines: 3}) })
	b.Run("five literals, ignoring case", func(b *testing.B) { benchmarkSearch(b, SearchRequest{Queries: rare, IgnoreCase: true}) })
	common := []string{"where it is", "statement", "treaties", "a least one", "retained earnings"}
	b.Run("five literals of common letters", func(b *testing.B) { benchmarkSearch(b, SearchRequest{Queries: common}) })
	b.Run("five literals of common letters, ignoring case", func(b *testing.B) {
		benchmarkSearch(b, SearchRequest{Queries: common, IgnoreCase: true})
	})
	b.Run("one short literal of common letters", func(b *testing.B) { benchmarkSearch(b, SearchRequest{Queries: []string{"tea"}}) })
	b.Run("in every line", func(b *testing.B) { benchmarkSearch(b, SearchRequest{Queries: []string{"e"}}) })
}
