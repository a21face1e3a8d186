package client

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// TrimReplay gives a message list in which the arguments of each tool call that one of the results answers are those to
// be sent to the model from now on: a document that was written is its beginning, everything else is whole. A result
// answers the tool call whose id is its CallID. All other values keep their order and their bytes, and a message in which
// nothing is replaced is the one that was given, so that what a provider has cached still holds.
//
// It knows tool calls as they stand in the messages of Anthropic (content blocks of type tool_use), of Amazon Bedrock
// (content blocks with toolUse), and of OpenAI (tool_calls, and items of type function_call, whose arguments are a string).
func TrimReplay(messages []json.RawMessage, results ...Result) ([]json.RawMessage, error) {
	replay := make(map[string]json.RawMessage, len(results))
	for _, r := range results {
		if len(r.ReplayArguments) > 0 {
			replay[r.CallID] = r.ReplayArguments
		}
	}
	out := make([]json.RawMessage, len(messages))
	for i, m := range messages {
		var err error
		if out[i], _, err = trimMessage(m, replay); err != nil {
			return nil, fmt.Errorf("trim message %d: %w", i, err)
		}
	}
	return out, nil
}

type replays = map[string]json.RawMessage

func trimMessage(raw json.RawMessage, replay replays) (json.RawMessage, bool, error) {
	if kindOf(raw) != '{' {
		return raw, false, nil
	}
	m, err := readObject(raw)
	if err != nil {
		return nil, false, err
	}
	if m.text("type") == "function_call" {
		if trimmed, changed, err := m.replace("arguments", replay[m.text("call_id")], true); changed || err != nil {
			return trimmed, changed, err
		}
		return raw, false, nil
	}
	content, changed, err := trimEach(m.get("content"), replay, trimBlock)
	if err != nil {
		return nil, false, err
	}
	calls, more, err := trimEach(m.get("tool_calls"), replay, trimToolCall)
	if err != nil || !changed && !more {
		return raw, false, err
	}
	m.set("content", content)
	m.set("tool_calls", calls)
	return m.bytes(), true, nil
}

// trimEach trims the members of an array that are objects.
func trimEach(raw json.RawMessage, replay replays, trim func(*object, replays) (json.RawMessage, bool, error)) (json.RawMessage, bool, error) {
	if kindOf(raw) != '[' {
		return raw, false, nil
	}
	var members []json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil {
		return nil, false, err
	}
	some := false
	for i, member := range members {
		if kindOf(member) != '{' {
			continue
		}
		o, err := readObject(member)
		if err != nil {
			return nil, false, err
		}
		trimmed, changed, err := trim(o, replay)
		if err != nil {
			return nil, false, err
		}
		if changed {
			members[i], some = trimmed, true
		}
	}
	if !some {
		return raw, false, nil
	}
	return joined('[', members, ']'), true, nil
}

func trimBlock(o *object, replay replays) (json.RawMessage, bool, error) {
	if o.text("type") == "tool_use" {
		return o.replace("input", replay[o.text("id")], false)
	}
	use := o.get("toolUse")
	if kindOf(use) != '{' {
		return nil, false, nil
	}
	inner, err := readObject(use)
	if err != nil {
		return nil, false, err
	}
	trimmed, changed, err := inner.replace("input", replay[inner.text("toolUseId")], false)
	if changed {
		o.set("toolUse", trimmed)
	}
	return o.bytes(), changed, err
}

func trimToolCall(o *object, replay replays) (json.RawMessage, bool, error) {
	function := o.get("function")
	if kindOf(function) != '{' {
		return nil, false, nil
	}
	inner, err := readObject(function)
	if err != nil {
		return nil, false, err
	}
	trimmed, changed, err := inner.replace("arguments", replay[o.text("id")], true)
	if changed {
		o.set("function", trimmed)
	}
	return o.bytes(), changed, err
}

// object is a JSON object that keeps the order and the bytes of its members.
type object struct {
	names  []string
	keys   []json.RawMessage
	values []json.RawMessage
}

func readObject(raw json.RawMessage) (*object, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	if _, err := d.Token(); err != nil {
		return nil, err
	}
	o := &object{}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, err
		}
		key, err := json.Marshal(name)
		if err != nil {
			return nil, err
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, err
		}
		o.names, o.keys, o.values = append(o.names, name.(string)), append(o.keys, key), append(o.values, value)
	}
	_, err := d.Token()
	return o, err
}

// get gives a member, of several of one name the last, as readers do; nil if there is none.
func (o *object) get(name string) json.RawMessage {
	for i := len(o.names) - 1; i >= 0; i-- {
		if o.names[i] == name {
			return o.values[i]
		}
	}
	return nil
}

// text gives a member that is a string, else "".
func (o *object) text(name string) string {
	var s string
	if json.Unmarshal(o.get(name), &s) != nil {
		return ""
	}
	return s
}

// set replaces a member that is there.
func (o *object) set(name string, value json.RawMessage) {
	for i := range o.names {
		if o.names[i] == name {
			o.values[i] = value
		}
	}
}

// replace puts a replay in the place of a member that is there, as a string of JSON where that is asked for.
func (o *object) replace(name string, replay json.RawMessage, asText bool) (json.RawMessage, bool, error) {
	if replay == nil || o.get(name) == nil {
		return nil, false, nil
	}
	if asText {
		encoded, err := json.Marshal(string(replay))
		if err != nil {
			return nil, false, err
		}
		replay = encoded
	}
	o.set(name, replay)
	return o.bytes(), true, nil
}

func (o *object) bytes() json.RawMessage {
	members := make([]json.RawMessage, len(o.keys))
	for i := range o.keys {
		members[i] = append(append(append(json.RawMessage{}, o.keys[i]...), ':'), o.values[i]...)
	}
	return joined('{', members, '}')
}

func joined(open byte, members []json.RawMessage, end byte) json.RawMessage {
	var b bytes.Buffer
	b.WriteByte(open)
	for i, m := range members {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(m)
	}
	b.WriteByte(end)
	return b.Bytes()
}

// kindOf gives the first byte of a JSON value, which tells what it is; 0 if there is none.
func kindOf(raw json.RawMessage) byte {
	trimmed := bytes.TrimLeft(raw, " \t\r\n")
	if len(trimmed) == 0 {
		return 0
	}
	return trimmed[0]
}
