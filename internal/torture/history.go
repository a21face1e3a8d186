package torture

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"treeline/internal/call"
)

// act is one call of a torture and all that its caller learned of it.
type act struct {
	Request
	deed         deed
	conversation string
	turn         string
	generation   int // counts the deletions before it
	made         time.Time
	// actor names who acts where it is a person's change, which has no token and no id of its own before it is stored.
	actor string
	// status is that of the answer to a person's change.
	status int

	mu sync.Mutex
	// accepted: the caller was told that the call is in the ledger. From then on it must be.
	accepted bool
	seq      int64
	results  []call.Result
	refusals []call.Code // answers of the moment, and refusals at the door
	cancel   bool        // cancelling was asked for
	// unsure: the caller gave up before it had a certain answer. lost: it had one, and an answer before that was lost.
	unsure, lost bool
	way          string
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

func (a *act) sentBefore() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.lost = true
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
	mu    sync.Mutex
	acts  []*act
	looks []look
}

// look is what a person saw of a file.
type look struct {
	generation int
	path       string
	// since is the last place in the order that was known to be done before the look.
	since   int64
	there   bool
	content []byte
}

func (h *history) saw(l look) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.looks = append(h.looks, l)
}

// done gives the last place in the order of a generation that is known to be done.
func (h *history) done(generation int) (last int64) {
	for _, a := range h.all() {
		if a.generation == generation {
			last = max(last, a.finished())
		}
	}
	return last
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

// finished is the act's place in the order if it is known that all before it is done, and it itself. What was cancelled may
// have ended while it waited.
func (a *act) finished() int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	if (len(a.results) > 0 && a.results[0].Code != call.Cancelled && a.results[0].Code != call.ConversationDeleted) || (a.actor != "" && a.status != http.StatusAccepted) {
		return a.seq
	}
	return 0
}

// whole gives the ref and the text of the act's result, if it is known, is of a generation, and is short enough to be whole.
func (a *act) whole(generation int) (ref, text string) {
	const short = 4_000
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.generation != generation || len(a.results) == 0 {
		return "", ""
	}
	r := a.results[0]
	if text = call.TextOf(r.Content); len(r.Content) != 1 || text == "" || len(text) > short {
		return "", ""
	}
	return r.ResultRef, text
}
