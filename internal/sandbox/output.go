package sandbox

import (
	"unicode/utf8"
)

// Output is what is kept of a stream: all of it in Head, or its head and its tail. Both are valid UTF-8; what was not is
// replaced, byte for byte, by U+FFFD.
type Output struct {
	Head string
	Tail string
	// Dropped counts the bytes that came between Head and Tail.
	Dropped int64
	// Total counts the bytes that came, after replacement.
	Total int64
}

// Recorder keeps the head and the tail of a stream in bounded memory and hands each piece on as valid UTF-8. It is for
// one goroutine.
type Recorder struct {
	emit    func(string)
	half    int
	head    []byte
	ring    []byte
	at      int // where the ring's next byte goes
	total   int64
	partial []byte // the beginning of a character whose rest has not come
}

// NewRecorder makes a recorder that keeps keep bytes; emit may be nil.
func NewRecorder(keep int, emit func(string)) *Recorder {
	return &Recorder{emit: emit, half: max(keep/2, utf8.UTFMax)}
}

// Write takes the next bytes of the stream. It never fails.
func (r *Recorder) Write(p []byte) (int, error) {
	n := len(p)
	if len(r.partial) > 0 {
		p = append(r.partial, p...)
		r.partial = nil
	}
	whole := len(p) - unfinished(p)
	r.partial = append([]byte(nil), p[whole:]...)
	r.keep(valid(p[:whole]))
	return n, nil
}

// Close hands on what is left of an unfinished character, as replacement characters.
func (r *Recorder) Close() error {
	rest := r.partial
	r.partial = nil
	r.keep(valid(rest))
	return nil
}

// Output gives what was kept so far.
func (r *Recorder) Output() Output {
	tail := r.tail()
	out := Output{Head: string(r.head), Total: r.total}
	out.Dropped = r.total - int64(len(r.head)) - int64(len(tail))
	if out.Dropped == 0 {
		out.Head += string(tail)
		return out
	}
	start := 0
	for start < len(tail) && !utf8.RuneStart(tail[start]) {
		start++
	}
	out.Tail = string(tail[start:])
	out.Dropped += int64(start)
	return out
}

func (r *Recorder) keep(p []byte) {
	if len(p) == 0 {
		return
	}
	if r.emit != nil {
		r.emit(string(p))
	}
	if r.total == int64(len(r.head)) {
		n := fit(p, r.half-len(r.head))
		r.head = append(r.head, p[:n]...)
		r.total += int64(n)
		p = p[n:]
	}
	r.total += int64(len(p))
	if len(p) > r.half {
		p = p[len(p)-r.half:]
	}
	for len(p) > 0 {
		if len(r.ring) < r.half {
			n := min(len(p), r.half-len(r.ring))
			r.ring = append(r.ring, p[:n]...)
			r.at = len(r.ring) % r.half
			p = p[n:]
			continue
		}
		n := copy(r.ring[r.at:], p)
		r.at = (r.at + n) % r.half
		p = p[n:]
	}
}

func (r *Recorder) tail() []byte {
	if len(r.ring) < r.half {
		return r.ring
	}
	return append(append(make([]byte, 0, r.half), r.ring[r.at:]...), r.ring[:r.at]...)
}

// fit gives the most bytes of p, at most n, that end between characters.
func fit(p []byte, n int) int {
	if n >= len(p) {
		return len(p)
	}
	for n > 0 && !utf8.RuneStart(p[n]) {
		n--
	}
	return n
}

// unfinished gives the length of the character that p ends within, 0 if it ends between two.
func unfinished(p []byte) int {
	for i := 1; i <= min(len(p), utf8.UTFMax-1); i++ {
		if b := p[len(p)-i]; utf8.RuneStart(b) {
			if b >= utf8.RuneSelf && !utf8.FullRune(p[len(p)-i:]) {
				return i
			}
			return 0
		}
	}
	return 0
}

func valid(p []byte) []byte {
	if utf8.Valid(p) {
		return p
	}
	out := make([]byte, 0, len(p)+len(p)/2)
	for len(p) > 0 {
		c, n := utf8.DecodeRune(p)
		out = utf8.AppendRune(out, c)
		p = p[n:]
	}
	return out
}
