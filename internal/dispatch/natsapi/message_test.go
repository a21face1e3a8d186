package natsapi

import (
	"encoding/json"
	"testing"
)

// Whatever comes, a request is either read or refused in words, and what is read says no more than what came.
func FuzzReadStep(f *testing.F) {
	for _, seed := range []string{
		`{"token":"x","callId":"c1","tool":"t","arguments":{"a":[1,2]}}`,
		`{"token":"x","calls":[{"callId":"c1","tool":"t","arguments":{}},{"callId":"c2","tool":"t","arguments":null}]}`,
		`{"token":"x","calls":[`, `{"token":"\ud800"}`, ` {} `, `{"a":{"b":[[[`, "\xef\xbb\xbf{}", `{"token":"x","token":"x"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s, refused := readStep(data)
		if refused != nil {
			if refused.Text == "" || refused.Code == "" {
				t.Errorf("refused as %q without words", refused.Code)
			}
			return
		}
		if len(s.calls) == 0 || !json.Valid(data) {
			t.Errorf("%q was read as %d calls", data, len(s.calls))
		}
		for _, c := range s.calls {
			if !json.Valid(c.Arguments) {
				t.Errorf("the arguments %q are no JSON", c.Arguments)
			}
		}
	})
}
