package torture

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"time"
)

// Report is what a torture came to.
type Report struct {
	Seed          uint64         `json:"seed"`
	Seconds       float64        `json:"seconds"`
	Conversations int            `json:"conversations"`
	Calls         Calls          `json:"calls"`
	Results       map[string]int `json:"results"`
	Told          Tellings       `json:"told"`
	Faults        map[string]int `json:"faults"`
	// RecoverySeconds is how long the last unfinished or untold call took after the last fault's end.
	RecoverySeconds float64 `json:"recoverySeconds"`
	// LeftOut are the faults and calls that this machine cannot have.
	LeftOut  []string `json:"leftOut"`
	Breaches []Breach `json:"breaches"`
}

// Calls counts what was sent.
type Calls struct {
	Made       int `json:"made"`
	Accepted   int `json:"accepted"`
	Stored     int `json:"stored"`
	Duplicates int `json:"duplicates"`
	Reuses     int `json:"reuses"`
	Cancels    int `json:"cancels"`
	Deletions  int `json:"deletions"`
	Busy       int `json:"busy"`
	SentAgain  int `json:"sentAgain"`
	TakenOver  int `json:"takenOver"`
	// ByPeople are changes that people make, and Looks their looks at a file.
	ByPeople int `json:"byPeople"`
	Looks    int `json:"looks"`
}

// Tellings counts what a subscriber that has only NATS was told.
type Tellings struct {
	Results int `json:"results"`
	Again   int `json:"again"`
}

// Breach is something that must not be.
type Breach struct {
	// Invariant is the one that was broken: lock, order, once, fence, all-or-nothing, no-wipe, liveness, isolation,
	// limits, durability, telling, answers, leftovers.
	Invariant    string `json:"invariant"`
	Conversation string `json:"conversation,omitempty"`
	What         string `json:"what"`
	// History is that of the conversation, for the first breach of it.
	History []string `json:"history,omitempty"`
}

// Text writes the report for people.
func (r Report) Text(w io.Writer) error {
	p := printer{w: w}
	p.line("seed %d, %.0f s, %d conversations", r.Seed, r.Seconds, r.Conversations)
	p.line("calls: %d made, %d accepted, %d in the ledger; %d sent twice on purpose, %d ids reused, %d cancels, %d deletions, %d busy, %d sent again, %d taken over; %d changes by people, %d looks",
		r.Calls.Made, r.Calls.Accepted, r.Calls.Stored, r.Calls.Duplicates, r.Calls.Reuses, r.Calls.Cancels, r.Calls.Deletions, r.Calls.Busy,
		r.Calls.SentAgain, r.Calls.TakenOver, r.Calls.ByPeople, r.Calls.Looks)
	p.line("results:")
	for _, k := range slices.Sorted(maps.Keys(r.Results)) {
		p.line("  %-32s %d", k, r.Results[k])
	}
	p.line("told: %d, %d of them again", r.Told.Results, r.Told.Again)
	p.line("faults:")
	for _, k := range slices.Sorted(maps.Keys(r.Faults)) {
		p.line("  %-32s %d", k, r.Faults[k])
	}
	for _, l := range r.LeftOut {
		p.line("left out: %s", l)
	}
	p.line("recovered %s after the last fault", time.Duration(r.RecoverySeconds*float64(time.Second)).Round(10*time.Millisecond))
	for _, b := range r.Breaches {
		p.line("BREACH (seed %d) of %s, conversation %s: %s", r.Seed, b.Invariant, b.Conversation, b.What)
		for _, h := range b.History {
			p.line("    %s", h)
		}
	}
	p.line("breaches: %d", len(r.Breaches))
	return p.err
}

type printer struct {
	w   io.Writer
	err error
}

func (p *printer) line(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format+"\n", args...)
	}
}
