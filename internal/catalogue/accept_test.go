package catalogue

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"treeline/internal/call"
	"treeline/internal/workspace"
)

func ptr[T any](v T) *T { return &v }

func TestAcceptedArgumentsAreTyped(t *testing.T) {
	c := load(t)
	for _, tc := range []struct {
		tool, args string
		want       any
	}{
		{ListFilesTool, ``, ListFiles{}},
		{ListFilesTool, `{"path":"notes","glob":"*.md"}`, ListFiles{Path: "notes", Glob: "*.md"}},
		{SearchFilesTool, `{"queries":["a.c"],"contextLines":3.0,"ignoreCase":true}`, SearchFiles{Queries: []string{"a.c"}, ContextLines: 3, IgnoreCase: true}},
		{SearchFilesTool, `{"queries":"[\"a\",\"b\"]"}`, SearchFiles{Queries: []string{"a", "b"}}},
		{ReadFileTool, `{"path":"a","startLine":2,"endLine":2,"startColumn":5}`,
			ReadFile{Files: []ReadTarget{{Path: "a", StartLine: 2, EndLine: 2, StartColumn: 5}}, Single: true}},
		{ReadFileTool, `{"files":[{"path":"a"},"{\"path\":\"b\"}"]}`, ReadFile{Files: []ReadTarget{{Path: "a"}, {Path: "b"}}}},
		{ReadFileTool, `{"files":[{"path":"a","startLine":1,"endLine":1},{"path":"a","startLine":9}]}`,
			ReadFile{Files: []ReadTarget{{Path: "a", StartLine: 1, EndLine: 1}, {Path: "a", StartLine: 9}}}},
		{ReadFileTool, `{"files":[{"path":"../x"},{"path":"a"}]}`, ReadFile{Files: []ReadTarget{{Path: "../x"}, {Path: "a"}}}},
		{WriteFileTool, `{"path":"foo..bar","content":""}`, WriteFile{Files: []WriteTarget{{Path: "foo..bar", Content: ptr("")}}, Single: true}},
		{WriteFileTool, `{"path":"a","source":{"toolResult":"r1","pointer":"/a~1b/0"}}`,
			WriteFile{Files: []WriteTarget{{Path: "a", Source: &Source{ToolResult: "r1", Pointer: ptr("/a~1b/0")}}}, Single: true}},
		{WriteFileTool, `{"files":[{"path":"a","content":"1"},{"path":"b","source":{"toolResult":"r1"}}]}`,
			WriteFile{Files: []WriteTarget{{Path: "a", Content: ptr("1")}, {Path: "b", Source: &Source{ToolResult: "r1"}}}}},
		{EditFileTool, `{"path":"a","edits":[{"find":"x","replace":"","all":true,"expectedMatches":2}]}`,
			EditFile{Path: "a", Edits: []workspace.Edit{{Find: ptr("x"), Replace: ptr(""), All: ptr(true), ExpectedMatches: ptr(2)}}}},
		{EditFileTool, `{"path":"a","edits":"[{\"startLine\":1,\"endLine\":0,\"anchor\":\"\",\"text\":\"x\"}]"}`,
			EditFile{Path: "a", Edits: []workspace.Edit{{StartLine: ptr(1), EndLine: ptr(0), Anchor: ptr(""), Text: ptr("x")}}}},
		{DeleteFileTool, `{"path":"a"}`, DeleteFile{Paths: []string{"a"}}},
		{DeleteFileTool, `{"paths":["b","a"]}`, DeleteFile{Paths: []string{"b", "a"}}},
		{MoveFileTool, `{"from":"a","to":"A"}`, MoveFile{From: "a", To: "A"}},
		{RunCodeTool, `{"code":"1","files":[{"id":"u"},{"id":"v","shape":"passages"}],"artifacts":[{"id":"x","version":2},{"id":"y"}],"toolResults":["r"],"skills":["s"],"timeoutSeconds":600}`,
			RunCode{Code: "1", Files: []RunFile{{"u", ShapeFile}, {"v", ShapePassages}}, Artifacts: []RunArtifact{{"x", ptr(2)}, {"y", nil}},
				ToolResults: []string{"r"}, Skills: []string{"s"}, TimeoutSeconds: 600}},
		{CalculateTool, `{"expressions":["1+","x"]}`, Calculate{Expressions: []string{"1+", "x"}}},
		{SaveArtifactTool, `{"path":"a","title":"T","artifactId":"ar","sources":["b"]}`, SaveArtifact{Path: "a", Title: "T", ArtifactID: "ar", Sources: []string{"b"}}},
		{EditArtifactTool, `{"artifactId":"ar","find":"a","replace":""}`, EditArtifact{ArtifactID: "ar", Find: "a"}},
		{LoadSkillTool, `{"name":"s"}`, LoadSkill{Name: "s"}},
		{ReadResultTool, `{"resultRef":"r","startLine":5}`, ReadResult{ResultRef: "r", StartLine: 5}},
		{PortalRevertTool, `{"beforeSeq":3}`, PortalRevert{BeforeSeq: 3}},
		{PortalDeleteTool, `{"path":"a"}`, PortalDelete{Path: "a"}},
	} {
		checked, refusal := c.Check(tc.tool, []byte(tc.args))
		if refusal != nil {
			t.Errorf("%s %s: %v", tc.tool, tc.args, refusal)
			continue
		}
		if !reflect.DeepEqual(checked.Typed, tc.want) {
			t.Errorf("%s %s: %+v, want %+v", tc.tool, tc.args, checked.Typed, tc.want)
		}
		decoded, err := Decode(tc.tool, checked.Arguments)
		if err != nil || !reflect.DeepEqual(decoded, tc.want) {
			t.Errorf("%s %s: stored as %s, which decodes to %+v (%v)", tc.tool, tc.args, checked.Arguments, decoded, err)
		}
	}
}

func TestArgumentsAreStoredAsTheyCameOrMended(t *testing.T) {
	c := load(t)
	for _, tc := range []struct{ name, tool, args, want string }{
		{"the caller's order stays", WriteFileTool, `{ "path" : "b",  "content":"\u00e9<>" }`, `{"path":"b","content":"\u00e9<>"}`},
		{"nothing is an empty object", ListFilesTool, " ", `{}`},
		{"a batch is an array", WriteFileTool, `{"files":"[{\"path\":\"a\",\"content\":\"1\"}]"}`, `{"files":[{"content":"1","path":"a"}]}`},
		{"an entry is an object", WriteFileTool, `{"files":["{\"path\":\"a\",\"content\":\"1\"}"]}`, `{"files":[{"content":"1","path":"a"}]}`},
		{"paths are composed", MoveFileTool, `{"to":"e\u0301","from":"a"}`, `{"from":"a","to":"é"}`},
		{"contents are not", WriteFileTool, `{"path":"a","content":"e\u0301"}`, `{"path":"a","content":"e\u0301"}`},
		{"numbers are plain", ReadFileTool, `{"path":"a","startLine":1e1}`, `{"path":"a","startLine":10}`},
	} {
		checked, refusal := c.Check(tc.tool, []byte(tc.args))
		if refusal != nil || string(checked.Arguments) != tc.want {
			t.Errorf("%s: %s, want %s (%v)", tc.name, checked.Arguments, tc.want, refusal)
		}
	}
}

func TestRefusedArgumentsAreReplayedAsTheyCame(t *testing.T) {
	c := load(t)
	for _, tc := range []struct{ name, tool, args, want string }{
		{"whole and in order", WriteFileTool, `{"path":"../a","content":"x"}`, `{"path":"../a","content":"x"}`},
		{"with a batch as an array", WriteFileTool, `{"files":"[{\"path\":\"../a\",\"content\":\"1\"}]"}`, `{"files":[{"content":"1","path":"../a"}]}`},
		{"a broken batch as it is", WriteFileTool, `{"files":"[{"}`, `{"files":"[{"}`},
		{"no JSON as a string", WriteFileTool, `{"path":`, `"{\"path\":"`},
		{"a key twice as a string", WriteFileTool, `{"path":"a","path":"a"}`, `"{\"path\":\"a\",\"path\":\"a\"}"`},
		{"another value as it is", WriteFileTool, `[1.0]`, `[1]`},
		{"an unknown number", ListFilesTool, `{"x":1.50}`, `{"x":15e-1}`},
	} {
		checked, refusal := c.Check(tc.tool, []byte(tc.args))
		if refusal == nil || string(checked.Arguments) != tc.want {
			t.Errorf("%s: %s, want %s", tc.name, checked.Arguments, tc.want)
		}
	}
}

func TestNamedPaths(t *testing.T) {
	c := load(t)
	for _, tc := range []struct {
		tool, args string
		want       []string
	}{
		{ListFilesTool, `{}`, nil},
		{ReadFileTool, `{"files":[{"path":"b"},{"path":"a"},{"path":"b"}]}`, []string{"b", "a"}},
		{DeleteFileTool, `{"paths":["b","a"]}`, []string{"b", "a"}},
		{MoveFileTool, `{"from":"b","to":"a"}`, []string{"b", "a"}},
		{SaveArtifactTool, `{"path":"a","sources":["b"]}`, []string{"a", "b"}},
		{RunCodeTool, `{"code":"1","files":[{"id":"a"}]}`, nil},
		{WriteFileTool, `{"path":"e\u0301","content":""}`, []string{"é"}},
		// Refused, but named.
		{WriteFileTool, `{"path":"a.md"}`, []string{"a.md"}},
		{WriteFileTool, `{"path":"a.md","content":{"path":"inner"}}`, []string{"a.md"}},
		{WriteFileTool, `{"path":"workspace/a.md","content":"x"}`, []string{"a.md"}},
		{WriteFileTool, `{"path":"/workspace/workspace/a.md","content":"x"}`, []string{"a.md"}},
		{WriteFileTool, `{"path":"/work/workspace/a.md","content":"x"}`, []string{"a.md"}},
		{WriteFileTool, `{"path":"workspace","content":"x"}`, []string{"workspace"}},
		{WriteFileTool, `{"path":"a\u0000b","content":"x"}`, []string{"a\ufffdb"}},
		{WriteFileTool, `{"path":"` + strings.Repeat("é", 1000) + `","content":"x"}`, []string{strings.Repeat("é", 512)}},
		{WriteFileTool, `{"files":[{"path":"a","content":"1"},{"path":"../b","content":"1"},{"path":7}]}`, []string{"a", "../b"}},
		{WriteFileTool, `{"files":"[{\"path\":\"a.md\",\"content\":\"say \\\"path\\\": \\\"no\\\"\"},{\"path\": \"b\""}`, []string{"a.md", "b"}},
		{WriteFileTool, `{"files":["{\"path\":\"a.md\""]}`, []string{"a.md"}},
		{WriteFileTool, `{"path":"a.md","path":"b.md"}`, []string{"a.md", "b.md"}},
		{WriteFileTool, `{"path":"a.md","content":"cut o`, []string{"a.md"}},
	} {
		checked, _ := c.Check(tc.tool, []byte(tc.args))
		if !slices.Equal(checked.Paths, tc.want) {
			t.Errorf("%s %s names %q, want %q", tc.tool, tc.args, checked.Paths, tc.want)
		}
	}
	many := make([]string, 5000)
	for i := range many {
		many[i] = fmt.Sprintf(`{"path":"p%d"}`, i)
	}
	checked, _ := c.Check(WriteFileTool, []byte(`{"files":[`+strings.Join(many, ",")+`]}`))
	if len(checked.Paths) != maxNamed {
		t.Errorf("%d paths are kept, want %d", len(checked.Paths), maxNamed)
	}
}

func TestDigestsTellArgumentsApart(t *testing.T) {
	c := load(t)
	digestOf := func(tool, args string) [32]byte {
		checked, _ := c.Check(tool, []byte(args))
		return checked.Digest
	}
	for _, same := range [][2]string{
		{`{"path":"a","startLine":1}`, `{ "startLine": 1.0, "path": "\u0061" }`},
		{`{"files":[{"path":"a"}]}`, `{"files":"[{\"path\":\"a\"}]"}`},
		{`{"path":"é"}`, `{"path":"e\u0301"}`},
	} {
		if digestOf(ReadFileTool, same[0]) != digestOf(ReadFileTool, same[1]) {
			t.Errorf("%s and %s count as different", same[0], same[1])
		}
	}
	seen := map[[32]byte]string{}
	for _, args := range []string{`{"path":"a"}`, `{"path":"b"}`, `{"path":"a","startLine":1}`, `{"files":[{"path":"a"}]}`, `{"path":1}`, `{"path":`, `{"path":"a"`, `[]`, `"{}"`} {
		d := digestOf(ReadFileTool, args)
		if other, ok := seen[d]; ok {
			t.Errorf("%s and %s count as equal", args, other)
		}
		seen[d] = args
	}
	if digestOf(ReadFileTool, `{"path":"a"}`) == digestOf(DeleteFileTool, `{"path":"a"}`) {
		t.Error("a read and a deletion of one path count as the same call")
	}
}

// What the replay of a call has cut is refused; what it has not is judged as before.
func TestReplaysAreCheckedAgain(t *testing.T) {
	c := load(t)
	for _, tool := range c.tools {
		for _, example := range tool.examples {
			first, refusal := c.Check(tool.Name, example)
			if refusal != nil {
				t.Errorf("%s refuses its own example %s: %v", tool.Name, example, refusal)
				continue
			}
			again, refusal := c.Check(tool.Name, first.Arguments)
			if refusal != nil || again.Digest != first.Digest || !bytes.Equal(again.Arguments, first.Arguments) {
				t.Errorf("%s takes %s otherwise the second time: %v", tool.Name, example, refusal)
			}
		}
	}
}

// A message of the largest size is judged in a moment, however it is made up.
func TestLargeArgumentsAreJudgedQuickly(t *testing.T) {
	c := load(t)
	const size = 1 << 20
	fill := func(unit string) string { return strings.Repeat(unit, size/len(unit)) }
	for name, tc := range map[string]struct{ tool, args string }{
		"one content":       {WriteFileTool, `{"path":"a","content":"` + fill("x") + `"}`},
		"unknown fields":    {ReadFileTool, `{"a0":1` + many(size/16, func(i int) string { return fmt.Sprintf(`,"n%d":1`, i) }) + `}`},
		"bad entries":       {WriteFileTool, `{"files":[{}` + fill(`,{"a":1}`) + `]}`},
		"strings for edits": {EditFileTool, `{"path":"a","edits":["x"` + fill(`,"x"`) + `]}`},
		"many edits":        {EditFileTool, `{"path":"a","edits":[{"find":"x","replace":"y"}` + fill(`,{"find":"x","replace":"y"}`) + `]}`},
		"many line edits": {EditFileTool, `{"path":"a","edits":[{"startLine":1,"endLine":1,"anchor":"","text":""}` +
			many(size/64, func(i int) string {
				return fmt.Sprintf(`,{"startLine":%d,"endLine":%d,"anchor":"","text":""}`, i+2, i+2)
			}) + `]}`},
		"a broken batch":  {WriteFileTool, `{"files":"` + fill(`\"path\":\"`) + `"}`},
		"encoded strings": {WriteFileTool, `{"files":["{}"` + fill(`,"{}"`) + `]}`},
		"no JSON":         {WriteFileTool, fill(`"path":"a\\`)},
		"a path":          {WriteFileTool, `{"path":"` + fill("a/") + `","content":""}`},
		"a query":         {SearchFilesTool, `{"queries":["` + fill("a") + `"],"contextLines":9}`},
		"digits":          {ReadFileTool, `{"path":"a","startLine":` + fill("1") + `}`},
	} {
		started := time.Now()
		c.Check(tc.tool, []byte(tc.args))
		if took := time.Since(started); took > 10*time.Second {
			t.Errorf("%s took %v", name, took)
		}
	}
}

func many(n int, each func(int) string) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(each(i))
	}
	return b.String()
}

func TestRefusalsStayShort(t *testing.T) {
	c := load(t)
	long := strings.Repeat("x", 100_000)
	for _, args := range []string{
		`{"` + long + `":1}`, `{"path":"` + long + `"}`, `{"path":"a","startLine":"` + long + `"}`,
		`{"files":[` + strings.Repeat(`{"a":1},`, 1000) + `{}]}`,
	} {
		_, refusal := c.Check(ReadFileTool, []byte(args))
		if refusal == nil || len(refusal.Text) > 2000 {
			t.Errorf("%.40s: %v", args, refusal)
		}
	}
}

func FuzzCheck(f *testing.F) {
	c, err := Load()
	if err != nil {
		f.Fatal(err)
	}
	for i, tool := range c.tools {
		for _, example := range tool.examples {
			f.Add(i, []byte(example))
		}
	}
	for _, s := range []string{`{"files":"[{\"path\":\"a\"}]"}`, `{"path":"workspace/é","trimmed":1}`, `{"path":"a","startLine":1e2}`, `{"edits":["{}"]}`, `[`, `{"path":"a\u0000"}`} {
		f.Add(3, []byte(s))
		f.Add(4, []byte(s))
	}
	f.Fuzz(func(t *testing.T, i int, raw []byte) {
		tool := c.tools[uint(i)%uint(len(c.tools))].Name
		checked, refusal := c.Check(tool, raw)
		if !json.Valid(checked.Arguments) {
			t.Fatalf("%s: stored as %q", tool, checked.Arguments)
		}
		for _, p := range checked.Paths {
			if !workspace.IsText([]byte(p)) || len(p) > maxNamedBytes {
				t.Fatalf("%s names %q", tool, p)
			}
		}
		if refusal != nil {
			if refusal.Code == "" || refusal.Text == "" || refusal.Code == call.Internal || checked.Typed != nil {
				t.Fatalf("%s: %+v", tool, refusal)
			}
			return
		}
		again, refusal := c.Check(tool, checked.Arguments)
		if refusal != nil || again.Digest != checked.Digest || !bytes.Equal(again.Arguments, checked.Arguments) || !reflect.DeepEqual(again.Typed, checked.Typed) {
			t.Fatalf("%s: %s is judged otherwise once it is stored: %v", tool, checked.Arguments, refusal)
		}
		decoded, err := Decode(tool, checked.Arguments)
		if err != nil || !reflect.DeepEqual(decoded, checked.Typed) {
			t.Fatalf("%s: %s decodes to %+v: %v", tool, checked.Arguments, decoded, err)
		}
	})
}
