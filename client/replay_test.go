package client_test

import (
	"encoding/json"
	"testing"

	"treeline/client"
)

func TestTrimReplay(t *testing.T) {
	results := []client.Result{
		{CallID: "c1", ReplayArguments: json.RawMessage(`{"path":"a","content":"The beg","trimmed":true,"fullLength":5000}`)},
		{CallID: "c2"},
	}
	const replay = `{"path":"a","content":"The beg","trimmed":true,"fullLength":5000}`
	for _, c := range []struct{ name, message, want string }{
		{"Anthropic",
			`{"role":"assistant","content":[{"type":"text","text":"<I> write"}, {"type":"tool_use","id":"c1","name":"write_file","input":{"path":"a","content":"The beginning"}}]}`,
			`{"role":"assistant","content":[{"type":"text","text":"<I> write"},{"type":"tool_use","id":"c1","name":"write_file","input":` + replay + `}]}`},
		{"Bedrock",
			`{"role":"assistant","content":[{"toolUse":{"toolUseId":"c1","name":"write_file","input":{"path":"a"}}}]}`,
			`{"role":"assistant","content":[{"toolUse":{"toolUseId":"c1","name":"write_file","input":` + replay + `}}]}`},
		{"OpenAI",
			`{"role":"assistant","content":null,"tool_calls":[{"id":"c0","type":"function","function":{"name":"x","arguments":"{}"}},{"id":"c1","type":"function","function":{"name":"write_file","arguments":"{\"path\":\"a\"}"}}]}`,
			`{"role":"assistant","content":null,"tool_calls":[{"id":"c0","type":"function","function":{"name":"x","arguments":"{}"}},{"id":"c1","type":"function","function":{"name":"write_file","arguments":"{\"path\":\"a\",\"content\":\"The beg\",\"trimmed\":true,\"fullLength\":5000}"}}]}`},
		{"an OpenAI item",
			`{"type":"function_call","call_id":"c1","name":"write_file","arguments":"{}"}`,
			`{"type":"function_call","call_id":"c1","name":"write_file","arguments":"{\"path\":\"a\",\"content\":\"The beg\",\"trimmed\":true,\"fullLength\":5000}"}`},
		{"a call without a result", `{"role": "assistant", "content": [{"type":"tool_use","id":"c9","input":{"n":1.0}}]}`, ""},
		{"a result without a replay", `{"role": "assistant", "content": [{"type":"tool_use","id":"c2","input":{"n":1.0}}]}`, ""},
		{"the result itself", `{"role": "user", "content": [{"type":"tool_result","tool_use_id":"c1","content":"done"}]}`, ""},
		{"a message of text", `{"role": "user", "content": "c1"}`, ""},
		{"no object", ` ["c1"] `, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.want == "" {
				c.want = c.message
			}
			got, err := client.TrimReplay([]json.RawMessage{json.RawMessage(c.message)}, results...)
			if err != nil || len(got) != 1 || string(got[0]) != c.want {
				t.Errorf("got %s, error %v\nwant %s", got, err, c.want)
			}
		})
	}
	if _, err := client.TrimReplay([]json.RawMessage{json.RawMessage(`{"content":[`)}, results...); err == nil {
		t.Error("what is no JSON was taken")
	}
}
