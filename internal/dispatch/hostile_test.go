package dispatch_test

import (
	"fmt"
	"strings"
	"testing"

	"treeline/internal/call"
	"treeline/internal/dispatch/dispatchtest"
	"treeline/internal/store/db"
)

func TestOddToolNamesAreKeptClean(t *testing.T) {
	f := dispatchtest.New(t)
	id, token := f.Turn(t, "k1", "write_file")
	for i, c := range []struct{ name, want string }{
		{"no_such_tool", "no_such_tool"}, {"", ""}, {"a\x00b\nc\x7f", "a?b?c?"}, {"\xff\xfe", "??"}, {"größe", "größe"},
		{strings.Repeat("é", 100), strings.Repeat("é", 64)}, {"portal_put", "portal_put"}, {"write_file ", "write_file "},
	} {
		callID := fmt.Sprintf("c%d", i)
		a, err := f.Dispatcher.Call(t.Context(), token, request(callID, c.name, `{}`), 0)
		if err != nil || a.Result == nil || a.Result.Code != call.ToolNotOffered || a.Result.Tool != c.want {
			t.Errorf("%q: %+v, %v", c.name, a, err)
			continue
		}
		row, err := f.Ledger.Queries().Call(t.Context(), db.CallParams{TurnID: id, CallID: callID})
		if err != nil || row.Tool != c.want || row.Kind != "unknown" || row.Lane != "none" {
			t.Errorf("%q is kept as %q of kind %q, %v", c.name, row.Tool, row.Kind, err)
		}
	}
}

func TestHostileArgumentsAreRefusedAndNeverAFailure(t *testing.T) {
	f := dispatchtest.New(t)
	_, token := f.Turn(t, "k1", "write_file", "read_file", "run_code", "calculate")
	for i, arguments := range []string{
		``, `null`, `[]`, `"x"`, `{"path":"\u0000"}`, "{\"path\":\"\xff\"}", `{"path":"a\u0000b","content":"x"}`, `{"path":"a","content":"\ud800"}`,
		`{"files":[{"path":"\u0000","content":""}]}`, `{"path":"a","path":"b","content":""}`, strings.Repeat("[", 100_000), `{"a":` + strings.Repeat("1", 100_000) + `}`,
		`{"path":1e999999}`, "\x00", `{"` + strings.Repeat("k", 300_000) + `":1}`,
	} {
		for _, tool := range []string{"write_file", "read_file", "run_code", "calculate"} {
			id := fmt.Sprintf("%s-%d", tool, i)
			a, err := f.Dispatcher.Call(t.Context(), token, request(id, tool, arguments), 0)
			if err != nil {
				t.Errorf("%s %.40q: %v", tool, arguments, err)
				continue
			}
			if a.Result != nil && a.Result.Status != call.Refused {
				t.Errorf("%s %.40q: %+v", tool, arguments, a.Result)
			}
		}
	}
}
