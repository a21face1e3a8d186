package workspace

import "fmt"

// differing walks two texts that are equal when folded and tells what differs, the same thing once.
func differing(what string, f folding, given, there string) []string {
	var told []string
	seen := map[string]bool{}
	a, b := walk{f: f, text: []byte(given)}, walk{f: f, text: []byte(there)}
	for (a.more() || b.more()) && len(told) < tellPairs {
		fromA, fromB := a.at, b.at
		if !stepBoth(&a, &b) {
			break
		}
		has, want := given[fromA:a.at], there[fromB:b.at]
		if has == want {
			continue
		}
		s := fmt.Sprintf("the file has %s where %s has %s", describe(want), what, describe(has))
		if !seen[s] {
			seen[s] = true
			told = append(told, s)
		}
	}
	return told
}

// walk goes through a text by what is folded as one; folded counts the bytes that this came to.
type walk struct {
	f          folding
	text, unit []byte
	at, folded int
}

func (w *walk) more() bool { return w.at < len(w.text) }

// next gives how many bytes the next unit folds to and how long it is; a text at its end has none.
func (w *walk) next() (folded, n int) {
	if !w.more() {
		return 0, 0
	}
	w.unit, n = w.f.appendUnit(w.unit[:0], w.text, w.at)
	return len(w.unit), n
}

func (w *walk) take(folded, n int) { w.folded, w.at = w.folded+folded, w.at+n }

// stepBoth takes as few units of both as come to the same folded. What one side alone folds away stands for itself.
func stepBoth(a, b *walk) bool {
	for first := true; first || a.folded != b.folded; first = false {
		foldedA, nA := a.next()
		foldedB, nB := b.next()
		switch {
		case nA+nB == 0:
			return false
		case a.folded < b.folded, first && nA > 0 && foldedA == 0 && foldedB > 0:
			a.take(foldedA, nA)
		case b.folded < a.folded, first && nB > 0 && foldedB == 0 && foldedA > 0:
			b.take(foldedB, nB)
		default:
			a.take(foldedA, nA)
			b.take(foldedB, nB)
		}
		// Out of their place in the file, blanks can fold otherwise, so that one side ends too early.
		if a.folded < b.folded && !a.more() || b.folded < a.folded && !b.more() {
			return false
		}
	}
	return true
}
