package codeworker

import (
	"context"
	"encoding/json"
	"sync"
	"time"
	"unicode/utf8"

	"treeline/internal/ledger"
	"treeline/internal/sandbox"
)

const (
	// tellEvery is how often output is told while a program runs.
	tellEvery = 100 * time.Millisecond
	// tellRate is how many bytes of output a second are told; what comes faster is counted and skipped. It is also the most
	// that waits to be told, and that one message holds.
	tellRate = 64 << 10
	// pieceCost is what a piece of output costs of the rate beside its text, so that many small ones are bounded as well.
	pieceCost = 256
)

// progress is a message on treeline.progress.<conversation>.<turn>.<call>.
type progress struct {
	CallID         string `json:"callId"`
	TurnID         string `json:"turnId"`
	ConversationID string `json:"conversationId"`
	Tool           string `json:"tool"`
	Seq            int64  `json:"seq"`
	Attempt        int    `json:"attempt"`
	// N counts the messages of one attempt from 1, so that a reader sees a gap.
	N      int64          `json:"n"`
	State  string         `json:"state"`
	Stream sandbox.Stream `json:"stream,omitempty"`
	Text   string         `json:"text,omitempty"`
	// Skipped counts bytes of the stream, after Text, that came too fast to be told. The result has them, if it keeps them.
	Skipped int64     `json:"skipped,omitempty"`
	At      time.Time `json:"at"`
}

// teller tells a run's output as it comes, in bounded memory and at a bounded rate.
type teller struct {
	publish func(body []byte)
	work    ledger.Work
	n       int64 // touched by one goroutine at a time: start, then loop

	mu     sync.Mutex
	budget int // bytes that may be taken now
	pieces []piece
}

type piece struct {
	stream  sandbox.Stream
	text    []byte
	skipped int64
}

func newTeller(work ledger.Work, publish func([]byte)) *teller {
	return &teller{publish: publish, work: work, budget: tellRate}
}

// run tells that the call runs, and then its output until ctx ends, and what is left.
func (t *teller) run(ctx context.Context) {
	t.tell(piece{})
	tick := time.NewTicker(tellEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			t.flush()
			return
		case <-tick.C:
			t.flush()
		}
	}
}

// take takes a piece of output. It never waits for anybody.
func (t *teller) take(stream sandbox.Stream, text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := len(t.pieces); n == 0 || t.pieces[n-1].stream != stream {
		if t.budget < pieceCost {
			t.skip(stream, len(text))
			return
		}
		t.budget -= pieceCost
		t.pieces = append(t.pieces, piece{stream: stream})
	}
	last := &t.pieces[len(t.pieces)-1]
	fit := 0
	if last.skipped == 0 { // what was skipped comes after the text
		fit = prefix(text, t.budget)
	}
	last.text = append(last.text, text[:fit]...)
	t.budget -= fit
	last.skipped += int64(len(text) - fit)
}

// skip counts on the stream's last piece what is not told. There is one, or the budget would not be spent.
func (t *teller) skip(stream sandbox.Stream, n int) {
	for i := len(t.pieces) - 1; i >= 0; i-- {
		if t.pieces[i].stream == stream {
			t.pieces[i].skipped += int64(n)
			return
		}
	}
	t.pieces = append(t.pieces, piece{stream: stream, skipped: int64(n)}) // at most one a stream
}

func (t *teller) flush() {
	t.mu.Lock()
	pieces := t.pieces
	t.pieces = nil
	t.budget = min(t.budget+int(tellRate*tellEvery/time.Second), tellRate)
	t.mu.Unlock()
	for _, p := range pieces {
		t.tell(p)
	}
}

func (t *teller) tell(p piece) {
	t.n++
	body, err := json.Marshal(progress{
		CallID: t.work.Key.Call, TurnID: t.work.Key.Turn, ConversationID: t.work.Key.Conversation, Tool: t.work.Tool, Seq: t.work.Seq,
		Attempt: t.work.Attempt, N: t.n, State: "running", Stream: p.stream, Text: string(p.text), Skipped: p.skipped, At: time.Now().UTC(),
	})
	if err == nil { // strings and numbers always encode
		t.publish(body)
	}
}

// prefix gives the length of the longest beginning of s of at most n bytes that ends between characters.
func prefix(s string, n int) int {
	if len(s) <= n {
		return len(s)
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return n
}
