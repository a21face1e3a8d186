package schemas_test

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"treeline/internal/call"
	"treeline/schemas"
)

// base makes the names of the files into the URLs by which schemas refer to one another.
const base = "https://treeline.invalid/schemas/"

// names gives every schema file.
func names(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, pattern := range []string{"tools/*.json", "portal/*.json", "messages/*.json"} {
		found, err := fs.Glob(schemas.Files, pattern)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, found...)
	}
	return all
}

func parse(t *testing.T, name string) any {
	t.Helper()
	raw, err := schemas.Files.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return doc
}

// compile gives a schema whose references lead to the other files; formats are asserted.
func compile(t *testing.T, name string) *jsonschema.Schema {
	t.Helper()
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	for _, n := range names(t) {
		if err := compiler.AddResource(base+n, parse(t, n)); err != nil {
			t.Fatal(err)
		}
	}
	schema, err := compiler.Compile(base + name)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return schema
}

func TestExamplesAreValid(t *testing.T) {
	for _, name := range names(t) {
		schema := compile(t, name)
		doc, _ := parse(t, name).(map[string]any)
		examples, _ := doc["examples"].([]any)
		if len(examples) == 0 {
			t.Errorf("%s has no examples", name)
		}
		for i, example := range examples {
			if err := schema.Validate(example); err != nil {
				t.Errorf("%s, example %d: %v", name, i, err)
			}
		}
	}
}

// Models are sent these: what is inside must be plain, strict and explained.
func TestToolSchemasAreStrictAndPlain(t *testing.T) {
	files, err := fs.Glob(schemas.Files, "tools/*.json")
	if err != nil || len(files) != 13 {
		t.Fatalf("%d tools: %v", len(files), err)
	}
	for _, name := range files {
		doc, _ := parse(t, name).(map[string]any)
		if doc["$schema"] != "https://json-schema.org/draft/2020-12/schema" || doc["title"] != strings.TrimSuffix(path.Base(name), ".json") {
			t.Errorf("%s: $schema %v, title %v", name, doc["$schema"], doc["title"])
		}
		plainNode(t, name, doc)
	}
}

func plainNode(t *testing.T, where string, node map[string]any) {
	t.Helper()
	for _, word := range []string{"anyOf", "oneOf", "allOf", "not", "if", "$ref", "$defs"} {
		if _, ok := node[word]; ok {
			t.Errorf("%s uses %s", where, word)
		}
	}
	kind, ok := node["type"].(string)
	if !ok {
		t.Errorf("%s has no single type: %v", where, node["type"])
	}
	if kind == "object" && node["additionalProperties"] != false {
		t.Errorf("%s lets unknown fields in", where)
	}
	properties, _ := node["properties"].(map[string]any)
	for name, p := range properties {
		property, _ := p.(map[string]any)
		if text, _ := property["description"].(string); text == "" {
			t.Errorf("%s.%s has no description", where, name)
		}
		plainNode(t, where+"."+name, property)
	}
	if items, ok := node["items"].(map[string]any); ok {
		plainNode(t, where+"[]", items)
	}
}

func TestResultsOfTheCodeAreValid(t *testing.T) {
	schema := compile(t, "messages/result.json")
	now := time.Now()
	plain := call.Result{
		CallID: "c1", TurnID: "t1", ConversationID: "k1", Tool: "read_file", Status: call.OK, Data: json.RawMessage(`{}`),
		Changes: call.Changes{}.Normal(), ResultRef: "r1", ReplayArguments: json.RawMessage(`{"path":"a"}`), Attempt: 1, StartedAt: now, FinishedAt: now,
	}
	ok := plain
	ok.Content = []call.Content{call.Text(""), {Type: "image", Data: []byte{1, 2, 3}, MIMEType: "image/png"}}
	refused := plain
	refused.Status, refused.Code, refused.IsError, refused.Attempt = call.Refused, call.PathInvalid, true, 0
	refused.Content = []call.Content{call.Text("no")}
	refused.ReplayArguments = json.RawMessage(`"no JSON"`)
	for name, r := range map[string]call.Result{"ok": ok, "refused": refused} {
		encoded, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		value, err := jsonschema.UnmarshalJSON(bytes.NewReader(encoded))
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(value); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestMessagesThatAreNot(t *testing.T) {
	for _, tc := range []struct{ schema, message string }{
		{"messages/call.json", `{"token":"t","callId":"a.b","tool":"read_file","arguments":{}}`},
		{"messages/call.json", `{"token":"t","callId":"a","tool":"read_file"}`},
		{"messages/call.json", `{"token":"t","callId":"a","tool":"read_file","arguments":"{}"}`},
		{"messages/step.json", `{"token":"t","calls":[]}`},
		{"messages/accepted.json", `{"accepted":false,"seq":[1]}`},
		{"messages/accepted.json", `{"accepted":true,"seq":[]}`},
		{"messages/refusal.json", `{"accepted":true,"status":"refused","code":"busy","isError":true,"content":[{"type":"text","text":"x"}]}`},
		{"messages/call-ready.json", `{"conversationId":"k","turnId":"t","callId":"c","lane":"none","seq":1,"generation":0}`},
		{"messages/event.json", `{"event":"result","data":{"callId":"c","turnId":"t","conversationId":"k"}}`},
		{"messages/problem.json", `{"title":"x","status":200,"code":"x"}`},
	} {
		value, err := jsonschema.UnmarshalJSON(strings.NewReader(tc.message))
		if err != nil {
			t.Fatal(err)
		}
		if compile(t, tc.schema).Validate(value) == nil {
			t.Errorf("%s takes %s", tc.schema, tc.message)
		}
	}
}

var messageRef = regexp.MustCompile(`\$ref: '(messages/[^']+)'`)

// Over HTTP only; AsyncAPI is about NATS.
var notOverNATS = []string{"messages/event.json", "messages/problem.json"}

func TestAsyncAPINamesEveryMessage(t *testing.T) {
	doc, err := schemas.Files.ReadFile("asyncapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var referred []string
	for _, m := range messageRef.FindAllStringSubmatch(string(doc), -1) {
		referred = append(referred, m[1])
	}
	there, err := fs.Glob(schemas.Files, "messages/*.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range referred {
		if !slices.Contains(there, name) {
			t.Errorf("there is no %s", name)
		}
	}
	for _, name := range there {
		if !slices.Contains(referred, name) && !slices.Contains(notOverNATS, name) {
			t.Errorf("%s is not described", name)
		}
	}
	for _, subject := range []string{"treeline.call\n", "treeline.result\n", "treeline.results.{conversation}.{turn}.{call}\n",
		"treeline.progress.{conversation}.{turn}.{call}\n", "treeline.calls.{lane}.{conversation}\n", "treeline.cancel.{conversation}.{turn}.{call}\n"} {
		if !strings.Contains(string(doc), "address: "+subject) {
			t.Errorf("no channel for %s", subject)
		}
	}
}
