package workspace

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"treeline/internal/call"
)

func TestReplayArguments(t *testing.T) {
	content := strings.Repeat("é<\n", 100) // 300 characters
	first := `"` + strings.Repeat(`é<\n`, 66) + `é<"`
	long := string(quotedJSON(content))
	short := `"` + strings.Repeat("é", 200) + `"`
	for _, c := range []struct {
		name, tool, arguments string
		status                call.Status
		want                  string // the same as the arguments if empty
	}{
		{"a long content", "write_file", `{"path":"a","content":` + long + `}`, call.OK,
			`{"path":"a","content":` + first + `,"trimmed":true,"fullLength":300}`},
		{"a short content", "write_file", `{"path":"a","content":` + short + `}`, call.OK, ""},
		{"a batch", "write_file", `{"files":[{"content":` + long + `,"path":"a"},{"path":"b","content":"1"}]}`, call.OK,
			`{"files":[{"content":` + first + `,"trimmed":true,"fullLength":300,"path":"a"},{"path":"b","content":"1"}]}`},
		{"an encoded batch is a real array", "write_file", `{"files":` + string(quotedJSON(`[{"path":"a","content":"1"}]`)) + `}`, call.OK,
			`{"files":[{"path":"a","content":"1"}]}`},
		{"encoded entries are real objects", "write_file", `{"files":[` + string(quotedJSON(`{"path":"a","content":`+long+`}`)) + `]}`, call.OK,
			`{"files":[{"path":"a","content":` + first + `,"trimmed":true,"fullLength":300}]}`},
		{"a source", "write_file", `{"path":"a","source":{"toolResult":"r1","pointer":""}}`, call.OK, ""},
		{"a refused write", "write_file", `{"path":"../a","content":` + long + `}`, call.Refused, ""},
		{"a failed write", "write_file", `{"path":"a","content":` + long + `}`, call.Failed, ""},
		{"an edit", "edit_file", `{"path":"a","edits":[{"find":"x","replace":` + long + `}]}`, call.OK, ""},
		{"a run", "run_code", `{"code":` + long + `,"timeoutSeconds":1.0e1}`, call.OK, ""},
		{"no object", "write_file", `[1]`, call.OK, ""},
		{"not JSON", "write_file", `{"path":`, call.OK, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			want := c.want
			if want == "" {
				want = c.arguments
			}
			if got := DefaultLimits().ReplayArguments(c.tool, json.RawMessage(c.arguments), c.status); string(got) != want {
				t.Fatalf("got  %s\nwant %s", got, want)
			}
		})
	}
}

// What was not trimmed is replayed as it came, and can be sent again.
func TestReplayTrimsOnlyWhatIsLong(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		contents := rapid.SliceOfN(rapid.StringN(0, 250, -1), 1, 3).Draw(t, "contents")
		var entries []string
		for i, content := range contents {
			entries = append(entries, fmt.Sprintf(`{"path":"f%d","content":%s}`, i, quotedJSON(content)))
		}
		sent := `{"files":[` + strings.Join(entries, ",") + `]}`
		got := DefaultLimits().ReplayArguments("write_file", json.RawMessage(sent), call.OK)
		var replayed struct {
			Files []struct {
				Path       string
				Content    string
				Trimmed    bool
				FullLength int
			}
		}
		if err := json.Unmarshal(got, &replayed); err != nil {
			t.Fatal(err)
		}
		whole := true
		for i, f := range replayed.Files {
			runes := []rune(contents[i])
			if long := len(runes) > 200; long != f.Trimmed || long && (f.FullLength != len(runes) || f.Content != string(runes[:200])) ||
				!long && (f.Content != contents[i] || f.FullLength != 0) {
				t.Fatalf("content %d: %+v", i, f)
			} else if long {
				whole = false
			}
		}
		var a, b any
		if whole && (json.Unmarshal(got, &a) != nil || json.Unmarshal([]byte(sent), &b) != nil || !reflect.DeepEqual(a, b)) {
			t.Fatalf("sent %s, replayed %s", sent, got)
		}
	})
}
