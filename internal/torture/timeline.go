package torture

import (
	"sync"
	"time"
)

// timeline is what one thing is set to in the course of time, by requests of which each is answered before the next is
// sent. When exactly one takes effect, between its sending and its answer, nobody knows.
type timeline[T any] struct {
	mu    sync.Mutex
	marks []mark[T]
}

type mark[T any] struct {
	value      T
	sent, sure time.Time // sure is zero until the answer is there
}

// set has do set the thing to value.
func (l *timeline[T]) set(value T, do func() error) error {
	l.mu.Lock()
	l.marks = append(l.marks, mark[T]{value: value, sent: time.Now()})
	at := len(l.marks) - 1
	l.mu.Unlock()
	if err := do(); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.marks[at].sure = time.Now()
	return nil
}

// during gives every value that the thing may have had at some moment between from and to.
func (l *timeline[T]) during(from, to time.Time) []T {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []T
	for i, m := range l.marks {
		replaced := i+1 < len(l.marks) && !l.marks[i+1].sure.IsZero() && l.marks[i+1].sure.Before(from)
		if !replaced && !m.sent.After(to) {
			out = append(out, m.value)
		}
	}
	return out
}
