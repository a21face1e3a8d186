package workspace

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"
)

// needle finds one literal query in the body of a text. It looks for the least common byte (or, ignoring case, the least
// common character) of the query, and compares the rest only where that is: the machine finds single bytes many times
// faster than strings.
type needle struct {
	text []byte
	// impossible is set for a query that holds a newline: no line does.
	impossible bool
	// fold is set where case is ignored: the query's characters, folded.
	fold []rune
	// anchor is the index in text of the byte, or in fold of the character, that is looked for.
	anchor int
	// fallback is, for each prefix of fold, how long its longest proper prefix is that it also ends in.
	fallback []int
	// variants are, where case is ignored, the encodings that the anchor may have.
	variants [][]byte
}

// histogram counts the bytes of a sample of what is searched.
type histogram [256]int

// sampleFiles and sampleBytes bound what a histogram looks at.
const (
	sampleFiles = 64
	sampleBytes = 256
)

// sample takes a few bytes out of the middle of a few files.
func sample(bodies [][]byte) (h histogram) {
	step := len(bodies)/sampleFiles + 1
	for i := 0; i < len(bodies); i += step {
		from := max(0, (len(bodies[i])-sampleBytes)/2)
		for _, c := range bodies[i][from:min(len(bodies[i]), from+sampleBytes)] {
			h[c]++
		}
	}
	return h
}

func newNeedle(query string, ignoreCase bool, h *histogram) needle {
	n := needle{text: []byte(query), impossible: strings.ContainsRune(query, '\n')}
	if ignoreCase {
		for _, r := range query {
			n.fold = append(n.fold, foldRune(r))
		}
		n.anchor, n.variants = foldAnchor(n.fold, h)
		n.fallback = borders(n.fold)
		return n
	}
	for i, c := range n.text {
		if h[c] < h[n.text[n.anchor]] {
			n.anchor = i
		}
	}
	return n
}

// foldRune gives the least of the characters that differ from r only by case: one character for one, as in simple folding.
func foldRune(r rune) rune {
	if r < utf8.RuneSelf {
		if 'a' <= r && r <= 'z' {
			return r - 'a' + 'A'
		}
		return r
	}
	least := r
	for next := unicode.SimpleFold(r); next != r; next = unicode.SimpleFold(next) {
		least = min(least, next)
	}
	return least
}

// foldAnchor picks the character whose encodings are the least common.
func foldAnchor(folded []rune, h *histogram) (anchor int, variants [][]byte) {
	least := -1
	for i, r := range folded {
		encodings := [][]byte{utf8.AppendRune(nil, r)}
		for next := unicode.SimpleFold(r); next != r; next = unicode.SimpleFold(next) {
			encodings = append(encodings, utf8.AppendRune(nil, next))
		}
		cost := 0
		for _, e := range encodings {
			cost += h[e[0]] + len(e) - 1
		}
		if least < 0 || cost < least {
			least, anchor, variants = cost, i, encodings
		}
	}
	return anchor, variants
}

// finder goes through one body from left to right.
type finder struct {
	*needle
	body []byte
	// at is, where case is ignored, the next place of each variant of the anchor: before the search's place if not yet
	// looked for, len(body) if there is none. Characters have at most four forms.
	at [4]int
	// spent is, where case is ignored, how many characters were compared.
	spent int
}

func (n *needle) in(body []byte) finder {
	return finder{needle: n, body: body, at: [4]int{-1, -1, -1, -1}}
}

// next gives the first match that begins at from or later, as the bytes from start to end, or -1. from must not decrease.
func (f *finder) next(from int) (start, end int) {
	if f.fold != nil {
		return f.nextFolded(from)
	}
	rare := f.text[f.anchor]
	misses := 0
	for i := from + f.anchor; i < len(f.body); i++ {
		n := bytes.IndexByte(f.body[i:], rare)
		if n < 0 {
			return -1, -1
		}
		i += n
		start := i - f.anchor
		if bytes.HasPrefix(f.body[start:], f.text) {
			return start, start + len(f.text)
		}
		// Where the byte is common after all, the general search is faster and bounds the time.
		if misses++; misses > 32+(start-from)/12 {
			return f.nextPlain(start + 1)
		}
	}
	return -1, -1
}

func (f *finder) nextPlain(from int) (start, end int) {
	n := bytes.Index(f.body[from:], f.text)
	if n < 0 {
		return -1, -1
	}
	return from + n, from + n + len(f.text)
}

func (f *finder) nextFolded(from int) (start, end int) {
	for place := from; ; {
		i := f.nextAnchor(place)
		if i == len(f.body) {
			return -1, -1
		}
		if f.spent > 1024+8*i {
			return f.nextSteady(from)
		}
		if start, end, ok := f.matchAround(i); ok && start >= from {
			return start, end
		}
		place = i + 1
	}
}

// nextSteady is nextFolded in a time that does not depend on the query (Knuth, Morris and Pratt): for texts in which much of
// the query is found over and over.
func (f *finder) nextSteady(from int) (start, end int) {
	have := 0
	for end = from; end < len(f.body); {
		r, size := utf8.DecodeRune(f.body[end:])
		r, end = foldRune(r), end+size
		for have > 0 && f.fold[have] != r {
			have = f.fallback[have-1]
		}
		if f.fold[have] == r {
			have++
		}
		if have == len(f.fold) {
			for start = end; have > 0; have-- {
				_, size := utf8.DecodeLastRune(f.body[:start])
				start -= size
			}
			return start, end
		}
	}
	return -1, -1
}

func borders(s []rune) []int {
	b := make([]int, len(s))
	for i, n := 1, 0; i < len(s); i++ {
		for n > 0 && s[i] != s[n] {
			n = b[n-1]
		}
		if s[i] == s[n] {
			n++
		}
		b[i] = n
	}
	return b
}

// nextAnchor gives the first place of the anchor in any case that is not before from.
func (f *finder) nextAnchor(from int) int {
	least := len(f.body)
	for v, encoding := range f.variants {
		if f.at[v] < from {
			if n := bytes.Index(f.body[min(from, len(f.body)):], encoding); n >= 0 {
				f.at[v] = from + n
			} else {
				f.at[v] = len(f.body)
			}
		}
		least = min(least, f.at[v])
	}
	return least
}

// matchAround compares the query with the characters around its anchor, which is at byte i.
func (f *finder) matchAround(i int) (start, end int, ok bool) {
	start, end = i, i
	for k := f.anchor - 1; k >= 0; k-- {
		r, size := utf8.DecodeLastRune(f.body[:start])
		f.spent++
		if size == 0 || foldRune(r) != f.fold[k] {
			return 0, 0, false
		}
		start -= size
	}
	for _, want := range f.fold[f.anchor:] {
		r, size := utf8.DecodeRune(f.body[end:])
		f.spent++
		if size == 0 || foldRune(r) != want {
			return 0, 0, false
		}
		end += size
	}
	return start, end, true
}

// lineHit is the first match of a query on a line: the line's bytes, and the match's within the body.
type lineHit struct {
	line       Line
	start, end int
}

// nextLine gives the first line from byte from on, which is the beginning of a line, that the query is in.
func (f *finder) nextLine(from int) (lineHit, bool) {
	if f.impossible {
		return lineHit{}, false
	}
	for place := from; place < len(f.body); {
		start, end := f.next(place)
		if start < 0 {
			break
		}
		line := lineAt(f.body, start)
		if end <= line.End {
			line.Start = bytes.LastIndexByte(f.body[:start], '\n') + 1
			return lineHit{line, start, end}, true
		}
		place = start + 1 // the match reached into the line's ending
	}
	return lineHit{}, false
}

// countHits is the number of lines of body that the query is in.
func (n *needle) countHits(body []byte) (lines int) {
	f := n.in(body)
	for at := 0; ; lines++ {
		hit, ok := f.nextLine(at)
		if !ok {
			return lines
		}
		at = hit.line.Next
	}
}
