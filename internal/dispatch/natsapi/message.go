package natsapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"treeline/internal/call"
	"treeline/internal/dispatch"
)

// maxCalls is how many calls one step may have; more can never be waiting at once.
const maxCalls = 256

// step is a request on treeline.call: one call, or several.
type step struct {
	token string
	calls []dispatch.Request
}

// only gives the call id of a step of one call, "" of others.
func (s step) only() string {
	if len(s.calls) == 1 && call.ValidID(s.calls[0].CallID) {
		return s.calls[0].CallID
	}
	return ""
}

const callExample = `{"token":"...","callId":"c1","tool":"list_files","arguments":{}} or {"token":"...","calls":[{"callId":"c1","tool":"list_files","arguments":{}}]}`

// readStep reads a request on treeline.call. It takes the envelope apart and leaves the arguments as they came, for the
// door to judge. What could be read is given beside a refusal.
func readStep(data []byte) (step, *call.Refusal) {
	fields, err := members(data, "token", "callId", "tool", "arguments", "calls")
	if err != nil {
		return step{}, malformed("The message", err, callExample)
	}
	var s step
	if s.token, err = text(fields, "token"); err != nil {
		return s, malformed("The message", err, callExample)
	}
	list, several := fields["calls"]
	if !several {
		r, err := readCall(fields)
		s.calls = []dispatch.Request{r}
		if err != nil {
			return s, withID(malformed("The message", err, callExample), s.only())
		}
		return s, nil
	}
	for _, name := range []string{"callId", "tool", "arguments"} {
		if _, both := fields[name]; both {
			return s, malformed("The message", fmt.Errorf("it has calls and %s: send one call, or calls alone", name), callExample)
		}
	}
	var raw []json.RawMessage
	if err := json.Unmarshal(list, &raw); err != nil || raw == nil {
		return s, malformed("The message", errors.New("calls must be an array"), callExample)
	}
	if len(raw) == 0 || len(raw) > maxCalls {
		return s, malformed("The message", fmt.Errorf("calls has %d entries, and 1 to %d can be sent", len(raw), maxCalls), callExample)
	}
	for i, one := range raw {
		fields, err := members(one, "callId", "tool", "arguments")
		var r dispatch.Request
		if err == nil {
			r, err = readCall(fields)
		}
		if err != nil {
			id := ""
			if call.ValidID(r.CallID) {
				id = r.CallID
			}
			return s, withID(malformed(fmt.Sprintf("The entry %d of calls", i), err, callExample), id)
		}
		s.calls = append(s.calls, r)
	}
	return s, nil
}

func readCall(fields map[string]json.RawMessage) (dispatch.Request, error) {
	var r dispatch.Request
	var err error
	if r.CallID, err = text(fields, "callId"); err != nil {
		return r, err
	}
	if r.Tool, err = text(fields, "tool"); err != nil {
		return r, err
	}
	arguments, ok := fields["arguments"]
	if !ok {
		return r, errors.New("arguments is missing: an object, {} where a tool needs none")
	}
	r.Arguments = arguments
	return r, nil
}

// readResultRequest reads a request on treeline.result.
func readResultRequest(data []byte) (token, callID string, refused *call.Refusal) {
	const example = `{"token":"...","callId":"c1"}`
	fields, err := members(data, "token", "callId")
	if err == nil {
		token, err = text(fields, "token")
	}
	if err == nil {
		callID, err = text(fields, "callId")
	}
	if err == nil && !call.ValidID(callID) {
		err = errors.New(`callId must be 1 to 64 of the characters A-Z, a-z, 0-9, "_" and "-"`)
	}
	if err != nil {
		return "", "", malformed("The message", err, example)
	}
	return token, callID, nil
}

// members gives the members of a JSON object unread. It refuses a name that is not known or stands twice, which readers
// of JSON are known to disagree about.
func members(data []byte, known ...string) (map[string]json.RawMessage, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, errors.New("it is not a JSON object")
	}
	out := map[string]json.RawMessage{}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return nil, errors.New("it is not valid JSON")
		}
		name, _ := t.(string)
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("it has the field %s, and the fields are %s", shown(name), strings.Join(known, ", "))
		}
		if _, twice := out[name]; twice {
			return nil, fmt.Errorf("it has the field %s twice", name)
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, fmt.Errorf("the value of %s is not valid JSON", name)
		}
		out[name] = value
	}
	if _, err := d.Token(); err != nil {
		return nil, errors.New("it is not valid JSON: it is cut off")
	}
	if len(bytes.TrimSpace(data[d.InputOffset():])) > 0 {
		return nil, errors.New("something comes after the JSON object")
	}
	return out, nil
}

// shown quotes a name that came, its beginning where it is long.
func shown(name string) string {
	const most = 40
	if r := []rune(name); len(r) > most {
		name = string(r[:most]) + "..."
	}
	return fmt.Sprintf("%q", name)
}

func text(fields map[string]json.RawMessage, name string) (string, error) {
	raw, ok := fields[name]
	if !ok {
		return "", fmt.Errorf("%s is missing: a string", name)
	}
	var s *string
	if err := json.Unmarshal(raw, &s); err != nil || s == nil {
		return "", fmt.Errorf("%s must be a string", name)
	}
	return *s, nil
}

func malformed(what string, err error, example string) *call.Refusal {
	return call.Refuse(call.InvalidArguments, "%s cannot be taken: %s. Nothing was done. It should look like %s.", what, err, example)
}

func withID(r *call.Refusal, callID string) *call.Refusal {
	r.CallID = callID
	return r
}
