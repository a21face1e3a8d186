package workspace

import (
	"fmt"
	"slices"
	"strings"

	"treeline/internal/call"
)

// failures gathers what is wrong with the edits of one call, so that one more call can mend all of it.
type failures struct {
	// edits is how many the call has.
	edits int
	list  []failure
	// unseen is set where edits were left that nobody looked at.
	unseen bool
}

// failure is the refusal of one edit; edit is -1 where it is of several, which the text names.
type failure struct {
	edit    int
	refusal *call.Refusal
}

func (f *failures) none() bool { return len(f.list) == 0 }

func (f *failures) add(edit int, r *call.Refusal) { f.list = append(f.list, failure{edit, r}) }

// enough reports whether no more refusals with the codes are to be told, now that edit was looked at.
func (f *failures) enough(edit int, codes ...call.Code) bool {
	n := 0
	for _, l := range f.list {
		if slices.Contains(codes, l.refusal.Code) {
			n++
		}
	}
	if n < tellFailures {
		return false
	}
	f.unseen = f.unseen || edit < f.edits-1
	return true
}

// refusal joins what was gathered: the first one's code, the words of all.
func (f *failures) refusal() *call.Refusal {
	if f.none() {
		return nil
	}
	var b strings.Builder
	if f.edits == 1 || len(f.list) == 1 && f.list[0].edit < 0 {
		b.WriteString("Nothing was changed: " + f.list[0].refusal.Text)
		for _, l := range f.list[1:] {
			fmt.Fprintf(&b, "\nBesides (%s): %s", l.refusal.Code, l.refusal.Text)
		}
		return &call.Refusal{Code: f.list[0].refusal.Code, Text: b.String()}
	}
	b.WriteString("Nothing was changed, in none of the edits.")
	for _, l := range f.list {
		if l.edit < 0 {
			fmt.Fprintf(&b, "\n%s: %s", l.refusal.Code, l.refusal.Text)
			continue
		}
		fmt.Fprintf(&b, "\nEdit %d of %d (%s): %s", l.edit+1, f.edits, l.refusal.Code, l.refusal.Text)
	}
	if f.unseen {
		b.WriteString("\nThe other edits were not all looked at.")
	}
	return &call.Refusal{Code: f.list[0].refusal.Code, Text: b.String()}
}
