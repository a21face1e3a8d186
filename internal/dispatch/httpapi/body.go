package httpapi

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"time"

	"treeline/internal/store"
	"treeline/internal/strictjson"
)

const (
	// bodyStride is how much of a body must arrive within Timeouts.Body.
	bodyStride = 64 << 10
	// drainBytes is how much more of a body that is too large is read and dropped, so that its sender gets to read the
	// answer; drainTime bounds that.
	drainBytes = 160 << 20 // more than the largest upload that some limit allows
	drainTime  = 20 * time.Second
	// jsonBytes bounds the JSON bodies of the portal.
	jsonBytes = 1 << 20
)

// bodyReader gives a body's reads a deadline that moves on as the body does, and takes it away at the body's end: it
// would otherwise end the wait for a result.
type bodyReader struct {
	io.ReadCloser
	control *http.ResponseController
	window  time.Duration
	since   int  // bytes read since the deadline was set
	fixed   bool // the deadline does not move any more
	done    bool // the body was read to its end, or there is none
	failed  bool
}

// boundBody puts the request's body under a deadline that lasts until the body is read.
func (s *Server) boundBody(control *http.ResponseController, r *http.Request) *bodyReader {
	b := &bodyReader{ReadCloser: r.Body, control: control, window: s.cfg.Timeouts.Body}
	if r.Body == nil || r.Body == http.NoBody {
		b.done = true
		return b
	}
	b.extend()
	r.Body = b
	return b
}

// extend gives the next stretch of the body its time. Connections that know no deadlines are tests' own.
func (b *bodyReader) extend() {
	b.since = 0
	_ = b.control.SetReadDeadline(time.Now().Add(b.window))
}

func (b *bodyReader) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.since += n
	switch {
	case errors.Is(err, io.EOF):
		b.done = true
		_ = b.control.SetReadDeadline(time.Time{})
	case err != nil:
		b.failed = true
	case b.since >= bodyStride && !b.fixed:
		b.extend()
	}
	return n, err
}

// end closes a connection whose body was not read to its end, rather than wait for the rest.
func (b *bodyReader) end(w *recorder) {
	if !b.done {
		if !w.note.answered {
			w.Header().Set("Connection", "close")
		}
		_ = b.control.SetReadDeadline(time.Now().Add(min(b.window, time.Second)))
	}
	w.extend() // for what net/http writes after the handler
}

// readAll reads a body of at most limit bytes. Of a larger one it gives limit+1 and drops a good part of the rest.
func (s *Server) readAll(w http.ResponseWriter, r *http.Request, limit int) ([]byte, error) {
	if r.Body == nil {
		return nil, nil
	}
	b, err := io.ReadAll(io.LimitReader(r.Body, int64(limit)+1))
	if err != nil {
		return nil, &store.BodyError{Err: err}
	}
	if len(b) > limit {
		drain(w, r)
	}
	return b, nil
}

// drain drops what is left of a body, within bounds, so that its sender is not cut off before it can read the answer; it
// has the connection closed where that was not all. A sender that waits to be told to go on is answered at once.
func drain(w http.ResponseWriter, r *http.Request) {
	b, ok := r.Body.(*bodyReader)
	if !ok || b.done {
		return
	}
	w.Header().Set("Connection", "close")
	if b.failed || r.Header.Get("Expect") != "" {
		return
	}
	b.fixed = true
	_ = b.control.SetReadDeadline(time.Now().Add(min(b.window, drainTime)))
	if _, err := io.CopyN(io.Discard, b, drainBytes); errors.Is(err, io.EOF) {
		w.Header().Del("Connection")
	}
}

// readJSON reads a body that must be as the named schema says into v. No body at all is an empty object.
func (s *Server) readJSON(w http.ResponseWriter, r *http.Request, schema string, v any) error {
	b, err := s.readAll(w, r, jsonBytes)
	if err != nil {
		return err
	}
	if len(b) > jsonBytes {
		return &http.MaxBytesError{Limit: jsonBytes}
	}
	if len(b) == 0 {
		b = []byte("{}")
	}
	value, err := strictjson.Decode(b, strictjson.DefaultLimits())
	if err != nil {
		return invalid("The body is not the JSON that was expected: %s", err)
	}
	if err := validate(schema, value); err != nil {
		return err
	}
	if err := json.Unmarshal(b, v); err != nil {
		return invalid("The body cannot be read: a number in it is too large.")
	}
	return nil
}
