package upload

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"

	"treeline/internal/call"
	"treeline/internal/store"
	"treeline/internal/strictjson"
)

// passageReader reads a JSON array of passages, one passage in memory at a time, and gives the same array, compact. It
// fails with a *call.Refusal at the first thing that is no passage.
type passageReader struct {
	body    *faultReader
	decoder *json.Decoder
	out     bytes.Buffer
	count   int
	begun   bool
	end     error // what comes after out
}

// faultReader keeps what went wrong with a body, to tell it from what is wrong in it, and bounds it.
type faultReader struct {
	r     io.Reader
	left  int64
	fault error
}

func (f *faultReader) Read(p []byte) (int, error) {
	n, err := f.r.Read(p)
	if f.left -= int64(n); f.left < 0 && f.fault == nil {
		f.fault = call.Refuse(call.TooLarge, "The passages are more than %d bytes of JSON. Nothing was stored.", MaxPassages)
		return 0, f.fault
	}
	if err != nil && err != io.EOF {
		f.fault = &store.BodyError{Err: err}
	}
	return n, err
}

func readPassages(body io.Reader, most int64) *passageReader {
	f := &faultReader{r: body, left: most}
	return &passageReader{body: f, decoder: json.NewDecoder(f)}
}

func (r *passageReader) Read(p []byte) (int, error) {
	for r.out.Len() == 0 {
		if r.end != nil {
			return 0, r.end
		}
		if r.end = r.next(); r.end != nil && r.end != io.EOF && r.body.fault != nil {
			r.end = r.body.fault
		}
	}
	return r.out.Read(p)
}

// next puts the next piece of the array into out; io.EOF is its end.
func (r *passageReader) next() error {
	if !r.begun {
		if t, err := r.decoder.Token(); err != nil || t != json.Delim('[') {
			return r.refuse("the body is no JSON array")
		}
		r.begun = true
		r.out.WriteByte('[')
		return nil
	}
	if r.decoder.More() {
		return r.passage()
	}
	if t, err := r.decoder.Token(); err != nil || t != json.Delim(']') {
		return r.refuse("the array does not end")
	}
	if _, err := r.decoder.Token(); !errors.Is(err, io.EOF) {
		return r.refuse("something follows the array")
	}
	r.out.WriteByte(']')
	return io.EOF
}

func (r *passageReader) passage() error {
	var raw json.RawMessage
	if err := r.decoder.Decode(&raw); err != nil {
		return r.refuse("passage %d is no JSON", r.count+1)
	}
	v, err := strictjson.Decode(raw, strictjson.DefaultLimits())
	if err != nil {
		return r.refuse("passage %d is not the JSON that was expected: %s", r.count+1, err)
	}
	object, ok := v.(map[string]any)
	if !ok {
		return r.refuse("passage %d is no object", r.count+1)
	}
	if _, ok := object["text"].(string); !ok {
		return r.refuse("passage %d has no text that is a string", r.count+1)
	}
	if r.count > 0 {
		r.out.WriteByte(',')
	}
	r.count++
	if err := json.Compact(&r.out, raw); err != nil {
		return r.refuse("passage %d is no JSON", r.count)
	}
	return nil
}

func (r *passageReader) refuse(format string, args ...any) error {
	refusal := call.Refuse(call.InvalidArguments, format, args...)
	refusal.Text = "Passages are a JSON array of objects with a text, such as [{\"text\": \"...\"}], and " + refusal.Text + ". Nothing was stored."
	return refusal
}
