package workspace

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"

	"treeline/internal/call"
)

// ReplayArguments gives the arguments of a call as they are resent at later steps. Of a write_file that is ok, every
// content longer than Limits.ReplayChars is its first so many characters, with trimmed and fullLength (in characters)
// beside it, and a batch is a real array even where it came encoded. Everything else, and every call that is not ok, is
// given back as it came, as is what is not a JSON object.
func (l Limits) ReplayArguments(tool string, arguments json.RawMessage, status call.Status) json.RawMessage {
	if tool != "write_file" || status != call.OK {
		return arguments
	}
	trimmed, ok := l.trimEntry(arguments, true)
	if !ok {
		return arguments
	}
	return trimmed
}

// member is one member of a JSON object; both parts are JSON.
type member struct {
	name  string
	value json.RawMessage
}

// members gives the members of a JSON object in their order.
func members(object json.RawMessage) ([]member, bool) {
	d := json.NewDecoder(bytes.NewReader(object))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, false
	}
	var list []member
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, false
		}
		m := member{}
		m.name, _ = name.(string)
		if d.Decode(&m.value) != nil {
			return nil, false
		}
		list = append(list, m)
	}
	_, err := d.Token()
	return list, err == nil
}

// trimEntry shortens the content of an object {path, content}; with batch also those of its files.
func (l Limits) trimEntry(object json.RawMessage, batch bool) (json.RawMessage, bool) {
	list, ok := members(object)
	if !ok {
		return nil, false
	}
	var out []member
	for _, m := range list {
		switch {
		case m.name == "content":
			out = append(out, l.trimContent(m)...)
		case m.name == "files" && batch:
			out = append(out, member{m.name, l.trimFiles(m.value)})
		default:
			out = append(out, m)
		}
	}
	return joined(out), true
}

func (l Limits) trimContent(m member) []member {
	var content string
	if json.Unmarshal(m.value, &content) != nil {
		return []member{m}
	}
	length := utf8.RuneCountInString(content)
	if length <= l.ReplayChars {
		return []member{m}
	}
	return []member{
		{m.name, quotedJSON(prefixChars(content, l.ReplayChars))},
		{"trimmed", json.RawMessage("true")},
		{"fullLength", json.RawMessage(number(length))},
	}
}

func (l Limits) trimFiles(files json.RawMessage) json.RawMessage {
	var list []json.RawMessage
	if json.Unmarshal(decoded(files), &list) != nil {
		return files
	}
	var b bytes.Buffer
	b.WriteByte('[')
	for i, f := range list {
		if i > 0 {
			b.WriteByte(',')
		}
		if entry, ok := l.trimEntry(decoded(f), false); ok {
			f = entry
		}
		b.Write(f)
	}
	b.WriteByte(']')
	return b.Bytes()
}

// decoded gives the JSON that a JSON string encodes, where it does; else the value itself.
func decoded(value json.RawMessage) json.RawMessage {
	var encoded string
	if json.Unmarshal(value, &encoded) != nil || !json.Valid([]byte(encoded)) {
		return value
	}
	return json.RawMessage(encoded)
}

func joined(list []member) json.RawMessage {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, m := range list {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(quotedJSON(m.name))
		b.WriteByte(':')
		b.Write(m.value)
	}
	b.WriteByte('}')
	return b.Bytes()
}

// quotedJSON spells s as a JSON string, without escapes that only HTML needs.
func quotedJSON(s string) json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a string always encodes, and a buffer always takes it
	return bytes.TrimSuffix(b.Bytes(), []byte{'\n'})
}
