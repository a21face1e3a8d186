package torture

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"

	"treeline/internal/call"
)

// act is one call of a torture and all that its caller learned of it.
type act struct {
	Request
	deed         deed
	conversation string
	turn         string
	generation   int // counts the deletions before it

	mu sync.Mutex
	// accepted: the caller was told that the call is in the ledger. From then on it must be.
	accepted bool
	seq      int64
	results  []call.Result
	refusals []call.Code // answers of the moment, and refusals at the door
	cancel   bool        // cancelling was asked for
	// unsure: the caller gave up before it had a certain answer.
	unsure bool
	way    string
}

func (a *act) key() call.Key {
	return call.Key{Conversation: a.conversation, Turn: a.turn, Call: a.CallID}
}

// note keeps what came back.
func (a *act) note(r Reply) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if r.Accepted {
		a.accepted, a.seq = true, max(a.seq, r.Seq)
	}
	if r.Result != nil {
		a.results = append(a.results, *r.Result)
	}
	if r.Refusal != "" {
		a.refusals = append(a.refusals, r.Refusal)
	}
}

func (a *act) askedToCancel() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.cancel = true
}

func (a *act) gaveUp() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.unsure = true
}

func (a *act) String() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	var b strings.Builder
	fmt.Fprintf(&b, "%s.%s %s over %s accepted=%t seq=%d cancel=%t unsure=%t refusals=%v args=%.160s", a.turn, a.CallID, a.Tool, a.way,
		a.accepted, a.seq, a.cancel, a.unsure, a.refusals, a.Arguments)
	for _, r := range a.results {
		fmt.Fprintf(&b, " -> seq=%d %s %s attempt=%d", r.Seq, r.Status, r.Code, r.Attempt)
	}
	return b.String()
}

// history is what one conversation went through.
type history struct {
	mu   sync.Mutex
	acts []*act
}

func (h *history) add(a *act) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.acts = append(h.acts, a)
}

func (h *history) all() []*act {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.acts)
}

// lines tells the history in the order of the places, as far as they are known.
func (h *history) lines() []string {
	acts := h.all()
	slices.SortStableFunc(acts, func(a, b *act) int { return cmp.Compare(a.place(), b.place()) })
	lines := make([]string, len(acts))
	for i, a := range acts {
		lines[i] = a.String()
	}
	return lines
}

func (a *act) place() int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.seq
}
