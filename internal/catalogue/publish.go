package catalogue

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// withSchema gives the row with what its schema says: the rules compiled, and the form in which it is published.
func (t Tool) withSchema(raw []byte) (Tool, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return t, fmt.Errorf("parsing it: %w", err)
	}
	schema, ok := doc.(map[string]any)
	if !ok {
		return t, fmt.Errorf("it is a %T, not an object", doc)
	}
	t.schema = schema
	compiler := jsonschema.NewCompiler()
	name := "urn:treeline:tools:" + t.Name
	if err := compiler.AddResource(name, doc); err != nil {
		return t, fmt.Errorf("adding it: %w", err)
	}
	if t.rules, err = compiler.Compile(name); err != nil {
		return t, fmt.Errorf("compiling it: %w", err)
	}
	var examples struct {
		Examples []json.RawMessage `json:"examples"`
	}
	if err := json.Unmarshal(raw, &examples); err != nil {
		return t, fmt.Errorf("reading its examples: %w", err)
	}
	for _, e := range examples.Examples {
		var b bytes.Buffer
		if err := json.Compact(&b, e); err != nil {
			return t, fmt.Errorf("compacting an example: %w", err)
		}
		t.examples = append(t.examples, b.Bytes())
	}
	t.template, _ = schema["description"].(string)
	t.Schema, err = without(raw, "title", "description")
	return t, err
}

// without gives the object raw, compact and in its own order, less some members: a model that is sent a tool's name and
// description need not pay for them twice.
func without(raw []byte, names ...string) (json.RawMessage, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	if _, err := d.Token(); err != nil {
		return nil, fmt.Errorf("reading its first token: %w", err)
	}
	out := bytes.NewBufferString("{")
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, fmt.Errorf("reading a member's name: %w", err)
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, fmt.Errorf("reading the member %v: %w", name, err)
		}
		text, _ := name.(string)
		if slices.Contains(names, text) {
			continue
		}
		if out.Len() > 1 {
			out.WriteByte(',')
		}
		fmt.Fprintf(out, "%q:", text)
		if err := json.Compact(out, value); err != nil {
			return nil, fmt.Errorf("compacting the member %s: %w", text, err)
		}
	}
	out.WriteByte('}')
	return out.Bytes(), nil
}
