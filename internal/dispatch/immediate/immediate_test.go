package immediate_test

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"treeline/internal/call"
	"treeline/internal/catalogue"
	"treeline/internal/devenv/devtest"
	"treeline/internal/dispatch"
	"treeline/internal/dispatch/immediate"
	"treeline/internal/ledger"
	"treeline/internal/skill"
	"treeline/internal/store"
	"treeline/internal/turn"
	"treeline/internal/workspace"
)

func TestMain(m *testing.M) { devtest.Main(m) }

type bench struct {
	t       *testing.T
	db      *devtest.Database
	ledger  *ledger.Ledger
	answers map[string]dispatch.Immediate
	turn    turn.Turn
}

func newBench(t *testing.T) *bench {
	t.Helper()
	d := devtest.Postgres(t, store.Migrate)
	b := &bench{t: t, db: d, ledger: ledger.New(d.Pool, ledger.DefaultConfig()), answers: immediate.Answers(d.Pool, workspace.DefaultLimits())}
	b.turn = b.open("k1", "t1")
	return b
}

func (b *bench) open(conversation, id string) turn.Turn {
	b.t.Helper()
	if _, err := b.ledger.PutConversation(b.t.Context(), conversation); err != nil {
		b.t.Fatal(err)
	}
	_, hash := turn.NewToken()
	t := turn.Turn{ID: id, Conversation: conversation, Generation: 1, Caller: turn.Caller{User: "u", Department: "d"}}
	if err := b.ledger.OpenTurn(b.t.Context(), t, hash); err != nil {
		b.t.Fatal(err)
	}
	return t
}

// ask gives the text and data of an answer, or its refusal as "code: text".
func (b *bench) ask(t turn.Turn, tool string, arguments any) (text, data string) {
	b.t.Helper()
	o, err := b.answers[tool](b.t.Context(), t, arguments)
	var r *call.Refusal
	if errors.As(err, &r) {
		return r.Error(), ""
	}
	if err != nil {
		b.t.Fatal(err)
	}
	if o.Status != call.OK || o.Exact != (tool != catalogue.CalculateTool) {
		b.t.Errorf("%s: status %s, exact %t", tool, o.Status, o.Exact)
	}
	encoded, err := json.Marshal(o.Data)
	if err != nil {
		b.t.Fatal(err)
	}
	return call.TextOf(o.Content), string(encoded)
}

func TestCalculate(t *testing.T) {
	b := newBench(t)
	text, data := b.ask(b.turn, "calculate", catalogue.Calculate{Expressions: []string{"1+2", "1/0"}})
	if !strings.HasPrefix(text, "1+2 = 3\n1/0: no value. ") {
		t.Errorf("text %q", text)
	}
	if !strings.HasPrefix(data, `{"results":[{"expression":"1+2","value":"3"},{"expression":"1/0","error":"`) {
		t.Errorf("data %s", data)
	}
}

func (b *bench) putSkill(name string, files ...string) {
	b.t.Helper()
	var body bytes.Buffer
	w := zip.NewWriter(&body)
	for i := 0; i < len(files); i += 2 {
		f, err := w.Create(files[i])
		if err == nil {
			_, err = f.Write([]byte(files[i+1]))
		}
		if err != nil {
			b.t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		b.t.Fatal(err)
	}
	if _, _, err := skill.New(b.db.Pool, 16<<20).Put(context.Background(), name, &body); err != nil {
		b.t.Fatal(err)
	}
}

func TestLoadSkill(t *testing.T) {
	b := newBench(t)
	b.putSkill("sk", "SKILL.md", "\ufeff# S\nUse the script.\n", "scripts/x.py", "print('from the skill')\n")
	b.putSkill("other", "SKILL.md", "secret")
	b.turn.Skills = []string{"sk", "gone"}

	text, data := b.ask(b.turn, "load_skill", catalogue.LoadSkill{Name: "sk"})
	want := "# S\nUse the script.\n\n\nThe files of this skill (run_code with skills: [\"sk\"] puts them at skills/sk/):\n" +
		"SKILL.md  23 bytes\nscripts/x.py  24 bytes"
	if text != want {
		t.Errorf("text %q, want %q", text, want)
	}
	if want := `{"name":"sk","files":[{"path":"SKILL.md","bytes":23},{"path":"scripts/x.py","bytes":24}],"totalBytes":47}`; data != want {
		t.Errorf("data %s, want %s", data, want)
	}
	refused := map[string]bool{}
	for _, name := range []string{"gone", "other", "never"} {
		text, _ := b.ask(b.turn, "load_skill", catalogue.LoadSkill{Name: name})
		refused[strings.ReplaceAll(text, name, "NAME")] = true
	}
	if len(refused) != 1 {
		t.Errorf("a skill that is not there, one that the turn lacks, and one that is neither are refused differently: %v", refused)
	}
	for text := range refused {
		if !strings.HasPrefix(text, "input_not_found: ") {
			t.Errorf("refused as %s", text)
		}
	}
}

// own keeps a result of this system's own and gives its ref.
func (b *bench) own(t turn.Turn, id, text string) string {
	b.t.Helper()
	o := ledger.Outcome{Status: call.OK, Content: []call.Content{call.Text(text)}, Data: map[string]int{"n": 1}}
	_, err := b.ledger.Accept(b.t.Context(), t, []ledger.NewCall{{ID: id, Tool: "calculate", Kind: "arithmetic", Lane: "none", Arguments: []byte("{}"), Done: &o}})
	if err != nil {
		b.t.Fatal(err)
	}
	return ledger.ResultRef(call.Key{Conversation: t.Conversation, Turn: t.ID, Call: id})
}

func (b *bench) put(conversation, ref, output string) {
	b.t.Helper()
	_, err := store.PutResult(b.t.Context(), b.db.Pool, conversation, store.StoredResult{Ref: ref, ToolName: "fetch", Output: json.RawMessage(output)})
	if err != nil {
		b.t.Fatal(err)
	}
}

func TestReadResult(t *testing.T) {
	b := newBench(t)
	long := strings.Repeat("0123456789\n", 3000)
	own := b.own(b.turn, "c1", long)
	b.put("k1", "r-text", `"one\ntwo\n"`)
	b.put("k1", "r-object", `{"b":1.50,"a":["<x>"]}`)
	b.put("k1", "r-long", `"`+strings.Repeat("é", 50_000)+`"`)

	for _, c := range []struct {
		name string
		args catalogue.ReadResult
		text string // its beginning
		data string
	}{
		{"a text", catalogue.ReadResult{ResultRef: "r-text"}, "1\tone\n2\ttwo",
			`{"resultRef":"r-text","toolName":"fetch","isError":false,"startLine":1,"endLine":2,"totalLines":2,"newline":"lf","finalNewline":true}`},
		{"an object, indented, as it was written", catalogue.ReadResult{ResultRef: "r-object", StartLine: 2, EndLine: 4}, "2\t  \"b\": 1.50,\n3\t  \"a\": [\n4\t    \"<x>\"",
			`{"resultRef":"r-object","toolName":"fetch","isError":false,"startLine":2,"endLine":4,"totalLines":6,"newline":"lf","finalNewline":false}`},
		{"one's own, read on", catalogue.ReadResult{ResultRef: own, StartLine: 501}, "501\t0123456789\n502\t",
			fmt.Sprintf(`{"resultRef":"%s","toolName":"calculate","isError":false,"startLine":501,"endLine":2500,"totalLines":3000,"newline":"lf","finalNewline":true,"cut":"lines","nextLine":2501}`, own)},
		{"a line longer than the budget", catalogue.ReadResult{ResultRef: "r-long"}, "1\té",
			`{"resultRef":"r-long","toolName":"fetch","isError":false,"startLine":1,"endLine":1,"totalLines":1,"newline":"none","finalNewline":false,"cut":"characters","nextLine":1,"nextColumn":40001}`},
		{"and on in it", catalogue.ReadResult{ResultRef: "r-long", StartLine: 1, StartColumn: 40001}, "1\té",
			`{"resultRef":"r-long","toolName":"fetch","isError":false,"startLine":1,"endLine":1,"totalLines":1,"newline":"none","finalNewline":false}`},
		{"past the end", catalogue.ReadResult{ResultRef: "r-text", StartLine: 4}, "range_out_of_file: ", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			text, data := b.ask(b.turn, "read_result", c.args)
			if !strings.HasPrefix(text, c.text) {
				t.Errorf("text %.100q, want %q", text, c.text)
			}
			if data != c.data {
				t.Errorf("data %s\nwant %s", data, c.data)
			}
		})
	}
}

func TestNoResultOfAnotherConversationIsRead(t *testing.T) {
	b := newBench(t)
	other := b.open("k2", "t2")
	own := b.own(other, "c1", "secret")
	b.put("k2", "r-other", `"secret"`)
	refused := map[string]bool{}
	for _, ref := range []string{own, "r-other", "r-none", "tl-none"} {
		text, _ := b.ask(b.turn, "read_result", catalogue.ReadResult{ResultRef: ref})
		refused[strings.ReplaceAll(text, ref, "REF")] = true
	}
	if len(refused) != 1 {
		t.Errorf("refused differently: %v", refused)
	}
}

func TestAStoredResultDoesNotChange(t *testing.T) {
	b := newBench(t)
	ctx := context.Background()
	put := func(output string) (bool, error) {
		return store.PutResult(ctx, b.db.Pool, "k1", store.StoredResult{Ref: "r", ToolName: "fetch", Output: json.RawMessage(output)})
	}
	if made, err := put(`{"a":1,"b":2}`); !made || err != nil {
		t.Fatal(made, err)
	}
	if made, err := put(`{"b": 2.0, "a": 1}`); made || err != nil {
		t.Errorf("the same again: made %t, error %v", made, err)
	}
	if _, err := put(`{"a":1}`); !errors.Is(err, store.ErrOtherResult) {
		t.Errorf("another: error %v", err)
	}
	if _, err := store.PutResult(ctx, b.db.Pool, "none", store.StoredResult{Ref: "r", Output: json.RawMessage("1")}); !errors.Is(err, store.ErrAbsent) {
		t.Errorf("no conversation: error %v", err)
	}
	if _, err := b.ledger.Delete(ctx, "k1"); err != nil {
		t.Fatal(err)
	}
	var r *call.Refusal
	if _, err := put(`1`); !errors.As(err, &r) || r.Code != call.ConversationDeleted {
		t.Errorf("a deleted conversation: error %v", err)
	}
}
