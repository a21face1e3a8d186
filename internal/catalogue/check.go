package catalogue

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"

	"treeline/internal/call"
	"treeline/internal/strictjson"
)

// Checked is a call's arguments after the door. Where Check refuses, Arguments, Digest and Paths are there all the same,
// as good as they could be made out, and Typed is nil.
type Checked struct {
	// Arguments are what is stored, handed to the worker and replayed: strict JSON, encoded batches turned into arrays,
	// paths composed. They keep the caller's order where nothing had to be changed. Of a refused call they are what came,
	// with batches as arrays where those could be decoded; what was no JSON at all stands as one JSON string.
	Arguments json.RawMessage
	// Digest is equal for two calls of the same tool with the same arguments, however these are spelled.
	Digest [sha256.Size]byte
	// Paths are the paths that the call names, each once, in its order: valid UTF-8 without U+0000, at most maxNamed, each
	// of at most maxNamedBytes bytes. A path in the sandbox's spelling stands as the path that it means.
	Paths []string
	// Typed is the struct of the tool, by value, as Decode gives it.
	Typed any
}

// arguments is a call on its way through the door.
type arguments struct {
	tool    Tool
	raw     []byte
	values  map[string]any
	changed bool // values are no longer what raw says
	typed   any
	encoded []byte // the canonical form of values, nil while it is not known
}

// Check judges a call's arguments by all that needs no look at a workspace. Nothing at all counts as {}. The refusals come
// in this order: what is no strict JSON object (invalid_arguments); shortened replays (trimmed_content); encoded batches
// that cannot be decoded (batch_malformed); the schema (invalid_arguments, naming up to maxProblems fields); then the
// tool's own rules, of which those about the shape of the call come before those about paths, and those before the one
// about content. A name of no tool is tool_not_offered.
func (c *Catalogue) Check(tool string, raw []byte) (Checked, *call.Refusal) {
	t, ok := c.Tool(tool)
	if !ok {
		return unread(tool, raw), call.Refuse(call.ToolNotOffered, "The tool %s is not offered in this turn.", quoted(tool))
	}
	if len(bytes.TrimSpace(raw)) == 0 {
		raw = []byte("{}")
	}
	value, err := strictjson.Decode(raw, strictjson.DefaultLimits())
	if err != nil {
		return unread(tool, raw), t.refuse(nil, "the arguments are not the JSON that was expected: %s", err)
	}
	values, ok := value.(map[string]any)
	if !ok {
		return unread(tool, raw), t.refuse(nil, "the arguments must be a JSON object, and %s came", describe(value))
	}
	a := &arguments{tool: t, raw: raw, values: values}
	refusal := a.check()
	checked, err := a.checked()
	if err != nil && refusal == nil {
		refusal = t.refuse(nil, "the arguments cannot be stored: %s", err)
	}
	if refusal != nil {
		checked.Typed = nil
	}
	return checked, refusal
}

func (a *arguments) check() *call.Refusal {
	if r := a.refuseTrimmed(); r != nil {
		return r
	}
	malformed := a.decodeBatches()
	if r := a.refuseTrimmed(); r != nil {
		return r
	}
	if malformed != nil {
		return malformed
	}
	if r := a.checkSchema(); r != nil {
		return r
	}
	if r := a.decode(); r != nil {
		return r
	}
	if r := a.checkShape(); r != nil {
		return r
	}
	if r := a.composePaths(); r != nil {
		return r
	}
	return a.checkComposed()
}

// decode makes the typed arguments. Once the schema holds it can fail only on a number that is too large.
func (a *arguments) decode() *call.Refusal {
	encoded, err := a.canonical()
	if err == nil {
		a.typed, err = Decode(a.tool.Name, encoded)
	}
	if err != nil {
		a.typed = nil
		return a.tool.refuse(nil, "a number in the arguments is too large")
	}
	return nil
}

// mended says that values were changed.
func (a *arguments) mended() { a.changed, a.encoded = true, nil }

func (a *arguments) canonical() ([]byte, error) {
	if a.encoded != nil {
		return a.encoded, nil
	}
	encoded, err := strictjson.Encode(a.values)
	if err != nil {
		return nil, fmt.Errorf("encoding the arguments: %w", err)
	}
	a.encoded = encoded
	return encoded, nil
}

// checked gives what is known of the arguments as they are now.
func (a *arguments) checked() (Checked, error) {
	canonical, err := a.canonical()
	if err != nil {
		return unread(a.tool.Name, a.raw), err
	}
	out := Checked{Arguments: canonical, Digest: digest(a.tool.Name, canonical), Paths: namedPaths(a.values), Typed: a.typed}
	if a.changed || hasUnplainNumber(a.values) {
		return out, nil
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, a.raw); err != nil {
		return out, fmt.Errorf("compacting them: %w", err)
	}
	out.Arguments = compact.Bytes()
	return out, nil
}

func digest(tool string, canonical []byte) [sha256.Size]byte {
	h := sha256.New()
	h.Write([]byte(tool))
	h.Write([]byte{0})
	h.Write(canonical)
	return [sha256.Size]byte(h.Sum(nil))
}

// unread is what can be said of arguments that could not be read as an object.
func unread(tool string, raw []byte) Checked {
	out := Checked{Arguments: replayable(raw), Digest: digest(tool, raw), Paths: guessPaths(raw)}
	if canonical, err := strictjson.Canonical(raw); err == nil {
		out.Digest = digest(tool, canonical)
	}
	return out
}

// replayable gives raw as it came if it can stand within another JSON document that any reader takes, else as one string.
func replayable(raw []byte) json.RawMessage {
	value, err := strictjson.Decode(raw, strictjson.DefaultLimits())
	if err == nil {
		if encoded, err := strictjson.Encode(value); err == nil {
			return encoded
		}
	}
	encoded, err := strictjson.Encode(strings.ToValidUTF8(string(raw), "\ufffd"))
	if err != nil {
		return json.RawMessage("{}")
	}
	return encoded
}

// hasUnplainNumber reports whether a number is spelled in a way that a Go integer cannot be read from, such as 3.0.
func hasUnplainNumber(v any) bool {
	switch v := v.(type) {
	case json.Number:
		return strings.ContainsAny(string(v), ".eE")
	case []any:
		for _, member := range v {
			if hasUnplainNumber(member) {
				return true
			}
		}
	case map[string]any:
		for _, member := range v {
			if hasUnplainNumber(member) {
				return true
			}
		}
	}
	return false
}
