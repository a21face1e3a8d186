package workspace

import (
	"bytes"
	"encoding/binary"
	"unicode/utf8"
)

// sieve counts the lines of several needles in one go over a body (after Wu and Manber): it looks at three bytes at a time
// and leaps by how far off the first width bytes of any needle could then end. It is for needles without a rare byte, which
// a search for single bytes would stop at everywhere.
type sieve struct {
	needles []*needle
	index   []int // of each needle among the queries
	width   int
	shift   [1 << sieveBits]uint8
}

const (
	// sieveBits makes the table of leaps, by a hash of three bytes, small enough for a processor's nearest cache.
	sieveBits = 13
	// sieveWidth bounds the width of a sieve; sieveFrom is the least length of a needle that it pays for.
	sieveWidth, sieveFrom = 64, 4
	// rareIn is how many bytes must lie, on average, between two of a needle's anchors for it not to need a sieve.
	rareIn = 100
)

// newSieve takes the needles that need one, or gives nil if there are none.
func newSieve(needles []needle, h *histogram) *sieve {
	total := 0
	for _, n := range h {
		total += n
	}
	s := &sieve{width: sieveWidth}
	for q := range needles {
		if n := &needles[q]; n.frequency(h)*rareIn > total && len(n.text) >= sieveFrom && !n.impossible && n.leapable() {
			s.needles, s.index, s.width = append(s.needles, n), append(s.index, q), min(s.width, len(n.text))
		}
	}
	if len(s.needles) == 0 {
		return nil
	}
	for i := range s.shift {
		s.shift[i] = uint8(s.width - 2)
	}
	for _, n := range s.needles {
		for j := 2; j < s.width; j++ {
			s.note(n, n.text[j-2:j+1], uint8(s.width-1-j))
		}
	}
	return s
}

// note records that three bytes, in any case where that is ignored, may stand so far from the end of a needle.
func (s *sieve) note(n *needle, three []byte, left uint8) {
	for _, a := range n.cases(three[0]) {
		for _, b := range n.cases(three[1]) {
			for _, c := range n.cases(three[2]) {
				at := hashOf(uint32(a) | uint32(b)<<8 | uint32(c)<<16)
				s.shift[at] = min(s.shift[at], left)
			}
		}
	}
}

// hashOf hashes three bytes, the first of them lowest.
func hashOf(three uint32) uint32 { return three * 2654435761 >> (32 - sieveBits) }

// count adds up, in lines, the lines of body that each needle is in. It gives up, and reports false with lines as they were,
// where so much of the body looks like a needle that it would be slow.
func (s *sieve) count(body []byte, lines []int) bool {
	counts, resume := make([]int, len(s.needles)), make([]int, len(s.needles))
	if s.needles[0].fold != nil && (bytes.Contains(body, []byte(longS)) || bytes.Contains(body, []byte(kelvin))) {
		return false
	}
	misses := 0
	for i := s.width - 1; i < len(body); {
		if leap := s.shift[hashOf(binary.LittleEndian.Uint32(body[i-3:])>>8)]; leap > 0 {
			i += int(leap)
			continue
		}
		start := i - s.width + 1
		for k, n := range s.needles {
			if start < resume[k] {
				continue
			}
			if !n.begins(body[start:]) {
				misses++
				continue
			}
			if line := lineAt(body, start); start+len(n.text) <= line.End {
				counts[k], resume[k] = counts[k]+1, line.Next
			}
		}
		if misses > 64+len(body)/4 {
			return false
		}
		i++
	}
	for k, q := range s.index {
		lines[q] += counts[k]
	}
	return true
}

// frequency is how often the sample has the needle's anchor.
func (n *needle) frequency(h *histogram) (count int) {
	if n.fold == nil {
		return h[n.text[n.anchor]]
	}
	for _, v := range n.variants {
		count += h[v[0]]
	}
	return count
}

// leapable reports whether everything that the needle matches is as long as itself, and of its bytes but for the case of
// letters: bodies that hold longS or kelvin aside.
func (n *needle) leapable() bool { return n.fold == nil || isASCII(string(n.text)) }

// longS and kelvin are the only characters beyond ASCII that fold to letters of ASCII, "s" and "k".
const longS, kelvin = "\u017f", "\u212a"

// cases gives the bytes that the needle takes for c.
func (n *needle) cases(c byte) []byte {
	if lower := c | 0x20; n.fold != nil && 'a' <= lower && lower <= 'z' {
		return []byte{lower, lower &^ 0x20}
	}
	return []byte{c}
}

// begins reports whether a leapable needle is at the beginning of body.
func (n *needle) begins(body []byte) bool {
	if n.fold == nil {
		return bytes.HasPrefix(body, n.text)
	}
	if len(body) < len(n.fold) {
		return false
	}
	for i, want := range n.fold {
		if body[i] >= utf8.RuneSelf || foldRune(rune(body[i])) != want {
			return false
		}
	}
	return true
}
