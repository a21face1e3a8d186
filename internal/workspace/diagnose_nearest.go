package workspace

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// nearest finds the place in text that agrees with find for the longest, and for how many bytes.
func nearest(text []byte, find string) (start, agreed int) {
	if find == "" {
		return 0, 0
	}
	m := newMatcher([]byte(find))
	state := 0
	for i, b := range text {
		if state = m.next(state, b); state > agreed {
			start, agreed = i+1-state, state
		}
		if state == len(find) {
			break
		}
	}
	for agreed > 0 && agreed < len(find) && !utf8.RuneStart(find[agreed]) {
		agreed--
	}
	return start, agreed
}

// candidate is a place that find agrees with up to a point: to is the offset in norm, and want the rest of find, from
// there. It is shown at least as far as the offset end.
type candidate struct {
	from, to int
	want     string
	loosely  bool // blanks at both ends of lines aside
	backward bool // find agrees with what stands from offset to on, and want is what it has before that
	end      int
}

// nearestTo finds the candidate that says most about where find was meant to be.
func (x *excerpts) nearestTo(find string, thorough bool) (candidate, bool) {
	if from, agreed := nearest(x.window(), find); telling(find, agreed) {
		return candidate{from: from, to: from + agreed, want: find[agreed:]}, true
	}
	if !thorough {
		return candidate{}, false
	}
	if c, ok := x.nearestEnd(find); ok {
		return c, true
	}
	f := foldIndent | foldTrailing
	folded := string(f.fold([]byte(find)))
	from, agreed := nearest(x.foldedBy(f), folded)
	if !telling(folded, agreed) || agreed == len(folded) {
		return candidate{}, false
	}
	start, _ := f.unfold(x.windowOf(f), from, from)
	to, _ := f.unfold(x.windowOf(f), from+agreed, from+agreed)
	return candidate{from: start, to: to, want: folded[agreed:], loosely: true}, true
}

// nearestEnd finds the place that agrees with the end of find, as where an earlier edit changed its beginning.
func (x *excerpts) nearestEnd(find string) (candidate, bool) {
	window := x.window()
	end, agreed := nearestBackward(window, find)
	if !tellingEnd(find, agreed) {
		return candidate{}, false
	}
	from := end - agreed
	head := find[:len(find)-agreed]
	low := x.start(x.line(max(0, from-len(head))))
	if at, n := nearest(window[low:from], head); n > 0 {
		return candidate{from: low + at, to: low + at + n, want: find[n:], end: end}, true
	}
	return candidate{from: from, to: from, want: head, backward: true, end: end}, true
}

// nearestBackward finds the place in text that agrees with the end of find for the longest, and for how many bytes.
func nearestBackward(text []byte, find string) (end, agreed int) {
	turned := []byte(find)
	slices.Reverse(turned)
	m := newMatcher(turned)
	state := 0
	for i := len(text) - 1; i >= 0 && state < len(turned); i-- {
		if state = m.next(state, text[i]); state > agreed {
			end, agreed = i+state, state
		}
	}
	for agreed > 0 && !utf8.RuneStart(find[len(find)-agreed]) {
		agreed--
	}
	return end, agreed
}

// telling reports whether so long a beginning of find says anything about where it was meant to be.
func telling(find string, agreed int) bool {
	first, _, _ := strings.Cut(find, "\n")
	return agreed > 0 && (agreed > len(first) && hasWord(first) || hasWord(find[:agreed]) && 2*agreed >= min(len(first), 16))
}

// tellingEnd reports whether so long an end of find says anything about where it was meant to be.
func tellingEnd(find string, agreed int) bool {
	end := find[len(find)-agreed:]
	last := strings.TrimRight(find, "\n")
	last = last[strings.LastIndexByte(last, '\n')+1:]
	return hasWord(end) && (agreed > len(last)+1 || 2*agreed >= min(len(last), 16))
}
