package catalogue

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"treeline/internal/call"
)

func load(t testing.TB) *Catalogue {
	t.Helper()
	c, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

type refusalCase struct {
	name string
	args string
	code call.Code
	says []string // parts that the text has
}

func checkRefusals(t *testing.T, tool string, cases []refusalCase) {
	t.Helper()
	c := load(t)
	for _, tc := range cases {
		t.Run(tool+": "+tc.name, func(t *testing.T) {
			checked, refusal := c.Check(tool, []byte(tc.args))
			if refusal == nil {
				t.Fatalf("accepted as %s, want %s", checked.Arguments, tc.code)
			}
			if refusal.Code != tc.code {
				t.Errorf("code %s, want %s: %s", refusal.Code, tc.code, refusal.Text)
			}
			for _, part := range tc.says {
				if !strings.Contains(refusal.Text, part) {
					t.Errorf("the text does not say %q: %s", part, refusal.Text)
				}
			}
			if !json.Valid(checked.Arguments) {
				t.Errorf("the arguments to replay are no JSON: %q", checked.Arguments)
			}
			if checked.Typed != nil {
				t.Error("a refused call has typed arguments")
			}
			again, second := c.Check(tool, []byte(tc.args))
			if second == nil || *second != *refusal || again.Digest != checked.Digest || !bytes.Equal(again.Arguments, checked.Arguments) {
				t.Error("the same call was judged otherwise the second time")
			}
		})
	}
}

func TestRefusalsOfAnyTool(t *testing.T) {
	checkRefusals(t, ListFilesTool, []refusalCase{
		{"no JSON", `{"path":`, call.InvalidArguments, []string{"list_files", "line 1", "Example"}},
		{"not an object", `[1]`, call.InvalidArguments, []string{"JSON object", "an array of 1"}},
		{"null", `null`, call.InvalidArguments, []string{"JSON object", "null"}},
		{"a key twice", `{"path":"a","path":"b"}`, call.InvalidArguments, []string{`"path" is given twice`}},
		{"half a surrogate pair", `{"path":"\ud800"}`, call.InvalidArguments, []string{"surrogate"}},
		{"bytes after the value", `{} x`, call.InvalidArguments, []string{"after the end"}},
		{"invalid UTF-8", "{\"path\":\"\xff\"}", call.InvalidArguments, []string{"UTF-8"}},
		{"nested too deep", strings.Repeat(`{"a":`, 20000) + "1" + strings.Repeat("}", 20000), call.InvalidArguments, []string{"deeper"}},
		{"a number out of all bounds", `{"path":1e999999999}`, call.InvalidArguments, []string{"exponent"}},
		{"trimmed comes before the schema", `{"trimmed":true,"nonsense":1}`, call.TrimmedContent, []string{"read_file", "edit_file"}},
	})
	c := load(t)
	if _, r := c.Check("no_such_tool", []byte(`{}`)); r == nil || r.Code != call.ToolNotOffered || !strings.Contains(r.Text, "no_such_tool") {
		t.Errorf("a tool that is not: %v", r)
	}
}

func TestRefusalsOfListFiles(t *testing.T) {
	checkRefusals(t, ListFilesTool, []refusalCase{
		{"empty path", `{"path":""}`, call.PathInvalid, []string{"leave it out"}},
		{"a slash for the root", `{"path":"/"}`, call.PathInvalid, []string{"out"}},
		{"the sandbox's root", `{"path":"workspace"}`, call.PathInSandboxForm, []string{"out"}},
		{"climbing", `{"path":"../x"}`, call.PathInvalid, []string{"../x"}},
		{"unknown field with its near one", `{"folder":"a","globb":"*.md"}`, call.InvalidArguments, []string{"`folder`", "`globb`", "did you mean `glob`", "glob, path"}},
		{"empty glob", `{"glob":""}`, call.InvalidArguments, []string{"`glob`", "not empty"}},
		{"open bracket", `{"glob":"[a"}`, call.InvalidArguments, []string{"glob"}},
		{"null", `{"path":null}`, call.InvalidArguments, []string{"`path` must be a string, and null came", "leave the field out"}},
	})
}

func TestRefusalsOfSearchFiles(t *testing.T) {
	checkRefusals(t, SearchFilesTool, []refusalCase{
		{"no queries", `{}`, call.InvalidArguments, []string{"`queries` is missing", "an array of 1 to 5 strings"}},
		{"none in it", `{"queries":[]}`, call.InvalidArguments, []string{"an array of 1 to 5 strings", "an array of 0"}},
		{"six", `{"queries":["a","b","c","d","e","f"]}`, call.InvalidArguments, []string{"an array of 1 to 5 strings", "an array of 6"}},
		{"a bare string", `{"queries":"total"}`, call.InvalidArguments, []string{`"queries": ["total"]`}},
		{"an array cut off in a string", `{"queries":"[\"a\""}`, call.BatchMalformed, []string{"`queries`", "real array", `{"queries":["Total revenue"]}`}},
		{"an empty one", `{"queries":["a",""]}`, call.InvalidArguments, []string{"`queries[1]`", "not empty"}},
		{"a number for a string", `{"queries":[3]}`, call.InvalidArguments, []string{"`queries[0]` must be a string", "the number 3"}},
		{"four context lines", `{"queries":["a"],"contextLines":4}`, call.InvalidArguments, []string{"`contextLines` must be a whole number from 0 to 3", "the number 4"}},
		{"a number in quotes", `{"queries":["a"],"contextLines":"2"}`, call.InvalidArguments, []string{`"contextLines": 2`, "without quotes"}},
		{"a boolean in quotes", `{"queries":["a"],"ignoreCase":"true"}`, call.InvalidArguments, []string{`"ignoreCase": true`}},
		{"half a line", `{"queries":["a"],"contextLines":1.5}`, call.InvalidArguments, []string{"1.5"}},
		{"several faults at once", `{"query":"a","contextLines":9,"path":1}`, call.InvalidArguments,
			[]string{"`query` is not a field", "did you mean `queries`", "`queries` is missing", "`contextLines`", "and 1 more"}},
	})
}

func TestRefusalsOfReadFile(t *testing.T) {
	checkRefusals(t, ReadFileTool, []refusalCase{
		{"nothing named", `{}`, call.InvalidArguments, []string{"`path` is missing", "`files`"}},
		{"both forms", `{"path":"a","files":[{"path":"b"}]}`, call.InvalidArguments, []string{"both"}},
		{"a range beside files", `{"files":[{"path":"b"}],"startLine":2}`, call.InvalidArguments, []string{"`startLine` stands beside `files`"}},
		{"unknown field", `{"path":"a","start_line":1}`, call.InvalidArguments, []string{"`start_line`", "did you mean `startLine`"}},
		{"unknown field of an entry", `{"files":[{"path":"a"},{"file":"b"}]}`, call.InvalidArguments, []string{"`file` is not a field of `files[1]`", "`files[1].path` is missing"}},
		{"eleven files", `{"files":[` + strings.Repeat(`{"path":"a"},`, 10) + `{"path":"b"}]}`, call.InvalidArguments, []string{"an array of 1 to 10 objects", "an array of 11"}},
		{"line 0", `{"path":"a","startLine":0}`, call.InvalidArguments, []string{"`startLine` must be a whole number, 1 or more", "the number 0"}},
		{"line in quotes", `{"path":"a","startLine":"3"}`, call.InvalidArguments, []string{`"startLine": 3`, "without quotes"}},
		{"end before start", `{"path":"a","startLine":9,"endLine":3}`, call.InvalidArguments, []string{"`endLine`", "9", "3"}},
		{"end before start in an entry", `{"files":[{"path":"a"},{"path":"b","startLine":9,"endLine":3}]}`, call.InvalidArguments, []string{"`files[1].endLine`"}},
		{"names for objects", `{"files":["a","b"]}`, call.InvalidArguments, []string{"`files[0]` must be an object", `the string "a"`}},
		{"an encoded entry cut off", `{"files":["{\"path\":"]}`, call.BatchMalformed, []string{"`files[0]`", "real array"}},
		{"sandbox's spelling", `{"path":"workspace/deck.html"}`, call.PathInSandboxForm, []string{`the path is "deck.html"`}},
		{"several and no path among them", `{"files":[{"path":"/x"},{"path":"workspace/y"}]}`, call.PathInvalid, []string{"/x"}},
		{"a line past all counting", `{"path":"a","startLine":100000000000000000000}`, call.InvalidArguments, []string{"too large"}},
	})
}

func TestRefusalsOfWriteFile(t *testing.T) {
	checkRefusals(t, WriteFileTool, []refusalCase{
		{"nothing", `{}`, call.InvalidArguments, []string{"`path` is missing"}},
		{"both forms", `{"path":"a","content":"x","files":[{"path":"b","content":"y"}]}`, call.InvalidArguments, []string{"`path` and `files` are both there"}},
		{"content beside files", `{"content":"x","files":[{"path":"b","content":"y"}]}`, call.InvalidArguments, []string{"`content` stands beside `files`"}},
		{"four files", `{"files":[{"path":"a","content":"1"},{"path":"b","content":"1"},{"path":"c","content":"1"},{"path":"d","content":"1"}]}`,
			call.InvalidArguments, []string{"`files` must be an array of 1 to 3 objects", "an array of 4"}},
		{"no file", `{"files":[]}`, call.InvalidArguments, []string{"`files`"}},
		{"content and source", `{"path":"a","content":"x","source":{"toolResult":"r1"}}`, call.ContentAndSource, []string{"both came", `"a"`}},
		{"neither", `{"path":"a"}`, call.ContentAndSource, []string{"neither came"}},
		{"neither, in an entry", `{"files":[{"path":"a","content":""},{"path":"b"}]}`, call.ContentAndSource, []string{"`files[1]`", `"b"`}},
		{"an object for content", `{"path":"a.json","content":{"x":1}}`, call.InvalidArguments, []string{"`content` must be a string, and an object came"}},
		{"encoded source", `{"path":"a","source":"{\"toolResult\":\"r1\"}"}`, call.InvalidArguments, []string{"`source`", "the object itself"}},
		{"batch cut off", `{"files":"[{\"path\":\"a\",\"content\":\"1\""}`, call.BatchMalformed, []string{"Use path and content directly", `{"path":"notes/plan.md"`}},
		{"batch of no JSON", `{"files":"a.txt"}`, call.BatchMalformed, []string{"path and content"}},
		{"batch that encodes an object", `{"files":"{\"path\":\"a\",\"content\":\"1\"}"}`, call.BatchMalformed, []string{"an object", "path and content"}},
		{"batch with a key twice", `{"files":"[{\"path\":\"a\",\"path\":\"b\",\"content\":\"1\"}]"}`, call.BatchMalformed, []string{"twice"}},
		{"entry of no JSON", `{"files":[{"path":"a","content":"1"},"b"]}`, call.BatchMalformed, []string{"`files[1]`", "path and content"}},
		{"decoded batch with an unknown field", `{"files":"[{\"path\":\"a\",\"text\":\"1\"}]"}`, call.InvalidArguments, []string{"`text` is not a field of `files[0]`"}},
		{"trimmed at the top", `{"path":"a.md","content":"x","trimmed":true,"fullLength":3000}`, call.TrimmedContent, []string{`"a.md"`, "read_file", "edit_file"}},
		{"trimmed in an entry", `{"files":[{"path":"a","content":"x"},{"path":"b","content":"x","trimmed":false}]}`, call.TrimmedContent, []string{"`files[1].trimmed`"}},
		{"trimmed in an encoded entry", `{"files":"[{\"path\":\"a\",\"content\":\"x\",\"trimmed\":true}]"}`, call.TrimmedContent, nil},
		{"full length alone", `{"path":"a","content":"x","fullLength":3000}`, call.TrimmedContent, nil},
		{"path in an entry climbs", `{"files":[{"path":"a","content":"1"},{"path":"../x","content":"2"}]}`, call.PathInvalid, []string{"../x"}},
		{"empty path", `{"path":"","content":"x"}`, call.PathInvalid, nil},
		{"U+0000 in a path", `{"path":"a\u0000b","content":"x"}`, call.PathInvalid, []string{"U+0000"}},
		{"sandbox's spelling, absolute", `{"path":"/workspace/deck.html","content":"x"}`, call.PathInSandboxForm, []string{`the path is "deck.html"`}},
		{"one path twice", `{"files":[{"path":"a","content":"1"},{"path":"a","content":"2"}]}`, call.PathClash, []string{`"a"`}},
		{"one path twice, once decomposed", `{"files":[{"path":"é","content":"1"},{"path":"é","content":"2"}]}`, call.PathClash, nil},
		{"file and folder", `{"files":[{"path":"n/m","content":"1"},{"path":"n","content":"2"}]}`, call.PathClash, []string{`"n"`}},
		{"names that look alike", `{"files":[{"path":"Readme","content":"1"},{"path":"README","content":"2"}]}`, call.PathLookalike, nil},
		{"content that ends in a cut notice", `{"path":"a","content":"text\n[cut here: 900 characters are left out]\n"}`, call.TrimmedContent, []string{"`content`", `"a"`}},
		{"ref that is none", `{"path":"a","source":{"toolResult":"no ref"}}`, call.InvalidArguments, []string{"`source.toolResult`", "no ref"}},
		{"pointer that is none", `{"path":"a","source":{"toolResult":"r1","pointer":"body"}}`, call.InvalidArguments, []string{"`source.pointer`", "JSON Pointer", "body"}},
	})
}

func TestRefusalsOfEditFile(t *testing.T) {
	checkRefusals(t, EditFileTool, []refusalCase{
		{"no edits", `{"path":"a"}`, call.InvalidArguments, []string{"`edits` is missing"}},
		{"none in it", `{"path":"a","edits":[]}`, call.InvalidArguments, []string{"`edits`"}},
		{"an edit without its array", `{"path":"a","edits":{"find":"x","replace":"y"}}`, call.InvalidArguments, []string{"an array of 1 to 1000 objects", "an object came"}},
		{"other words for find", `{"path":"a","edits":[{"old_text":"x","new_text":"y"}]}`, call.InvalidArguments, []string{"`old_text`", "`edits[0]`", "find, replace"}},
		{"encoded and cut off", `{"path":"a","edits":"[{\"find\":"}`, call.BatchMalformed, []string{"real array"}},
		{"kinds mixed in one edit", `{"path":"a","edits":[{"find":"x","replace":"y","startLine":1}]}`, call.MixedEditKinds, nil},
		{"kinds mixed in one call", `{"path":"a","edits":[{"find":"x","replace":"y"},{"startLine":1,"endLine":1,"anchor":"a","text":"b"}]}`, call.MixedEditKinds, nil},
		{"empty find", `{"path":"a","edits":[{"find":"","replace":"b"}]}`, call.EmptyFind, nil},
		{"count without all", `{"path":"a","edits":[{"find":"a","replace":"b","expectedMatches":2}]}`, call.InvalidArguments, []string{"expectedMatches", "all"}},
		{"no replace", `{"path":"a","edits":[{"find":"a"}]}`, call.InvalidArguments, []string{"replace"}},
		{"no anchor", `{"path":"a","edits":[{"startLine":1,"endLine":1,"text":"x"}]}`, call.InvalidArguments, []string{"anchor"}},
		{"end far before start", `{"path":"a","edits":[{"startLine":5,"endLine":3,"anchor":"","text":"x"}]}`, call.InvalidArguments, []string{"endLine"}},
		{"overlap", `{"path":"a","edits":[{"startLine":2,"endLine":4,"anchor":"w","text":"x"},{"startLine":4,"endLine":5,"anchor":"w","text":"y"}]}`, call.RangesOverlap, nil},
		{"the rules of edits come before the path", `{"path":"/a","edits":[{"find":"","replace":"b"}]}`, call.EmptyFind, nil},
		{"path", `{"path":"/a","edits":[{"find":"a","replace":"b"}]}`, call.PathInvalid, nil},
	})
}

func TestRefusalsOfDeleteAndMove(t *testing.T) {
	checkRefusals(t, DeleteFileTool, []refusalCase{
		{"nothing", `{}`, call.InvalidArguments, []string{"`path` is missing", "`paths`"}},
		{"both", `{"path":"a","paths":["b"]}`, call.InvalidArguments, []string{"both"}},
		{"a bare string", `{"paths":"a"}`, call.InvalidArguments, []string{`"paths": ["a"]`}},
		{"none in it", `{"paths":[]}`, call.InvalidArguments, []string{"an array of 1 to 20 strings"}},
		{"twenty-one", `{"paths":[` + strings.Repeat(`"a",`, 20) + `"b"]}`, call.InvalidArguments, []string{"an array of 21"}},
		{"one twice", `{"paths":["a","b","a"]}`, call.PathClash, []string{`"a"`}},
		{"a path that is none", `{"paths":["a","b/"]}`, call.PathInvalid, []string{"b/"}},
	})
	checkRefusals(t, MoveFileTool, []refusalCase{
		{"no target", `{"from":"a"}`, call.InvalidArguments, []string{"`to` is missing"}},
		{"other words", `{"source":"a","destination":"b"}`, call.InvalidArguments, []string{"`destination`", "`source`", "from, to"}},
		{"target climbs", `{"from":"a","to":"../b"}`, call.PathInvalid, []string{"../b"}},
		{"source in the sandbox's spelling", `{"from":"workspace/a","to":"b"}`, call.PathInSandboxForm, []string{`"a"`}},
	})
}

func TestRefusalsOfRunCode(t *testing.T) {
	checkRefusals(t, RunCodeTool, []refusalCase{
		{"no code", `{}`, call.InvalidArguments, []string{"`code` is missing"}},
		{"empty code", `{"code":""}`, call.InvalidArguments, []string{"`code`"}},
		{"no time", `{"code":"1","timeoutSeconds":0}`, call.InvalidArguments, []string{"`timeoutSeconds` must be a whole number from 1 to 600", "the number 0"}},
		{"too much time", `{"code":"1","timeoutSeconds":601}`, call.InvalidArguments, []string{"from 1 to 600"}},
		{"four results", `{"code":"1","toolResults":["a","b","c","d"]}`, call.InvalidArguments, []string{"`toolResults` must be an array of at most 3 strings"}},
		{"another shape", `{"code":"1","files":[{"id":"u","shape":"text"}]}`, call.InvalidArguments, []string{"`files[0].shape`", `"file" or "passages"`}},
		{"names for objects", `{"code":"1","files":["u"]}`, call.InvalidArguments, []string{"`files[0]` must be an object"}},
		{"a name for an id", `{"code":"1","files":[{"id":"sales report.csv"}]}`, call.InvalidArguments, []string{"`files[0].id`", "sales report.csv"}},
		{"version 0", `{"code":"1","artifacts":[{"id":"a","version":0}]}`, call.InvalidArguments, []string{"`artifacts[0].version`"}},
		{"artifact without its id", `{"code":"1","artifacts":[{}]}`, call.InvalidArguments, []string{"`artifacts[0].id` is missing"}},
		{"a skill that can be none", `{"code":"1","skills":["../x"]}`, call.InvalidArguments, []string{"`skills[0]`"}},
	})
}

func TestRefusalsOfTheOthers(t *testing.T) {
	checkRefusals(t, CalculateTool, []refusalCase{
		{"a bare string", `{"expressions":"1+2"}`, call.InvalidArguments, []string{`"expressions": ["1+2"]`}},
		{"another word", `{"expression":"1+2"}`, call.InvalidArguments, []string{"did you mean `expressions`"}},
		{"none", `{"expressions":[]}`, call.InvalidArguments, []string{"an array of 1 to 20 strings"}},
		{"twenty-one", `{"expressions":[` + strings.Repeat(`"1",`, 20) + `"1"]}`, call.InvalidArguments, []string{"an array of 21"}},
		{"a number", `{"expressions":[1]}`, call.InvalidArguments, []string{"`expressions[0]`"}},
	})
	checkRefusals(t, SaveArtifactTool, []refusalCase{
		{"no path", `{"title":"x"}`, call.InvalidArguments, []string{"`path` is missing"}},
		{"an id that is none", `{"path":"a","artifactId":""}`, call.InvalidArguments, []string{"`artifactId`"}},
		{"a source that is no path", `{"path":"a","sources":["b","/c"]}`, call.PathInvalid, []string{"/c"}},
	})
	checkRefusals(t, EditArtifactTool, []refusalCase{
		{"empty find", `{"artifactId":"a","find":"","replace":"x"}`, call.EmptyFind, []string{"`find`"}},
		{"no replace", `{"artifactId":"a","find":"x"}`, call.InvalidArguments, []string{"`replace` is missing"}},
		{"an id that is none", `{"artifactId":"a b","find":"x","replace":""}`, call.InvalidArguments, []string{"`artifactId`"}},
	})
	checkRefusals(t, LoadSkillTool, []refusalCase{
		{"no name", `{}`, call.InvalidArguments, []string{"`name` is missing"}},
		{"a path for a name", `{"name":"a/b"}`, call.InvalidArguments, []string{"`name`"}},
	})
	checkRefusals(t, ReadResultTool, []refusalCase{
		{"another word", `{"ref":"r1"}`, call.InvalidArguments, []string{"did you mean `resultRef`"}},
		{"end before start", `{"resultRef":"r1","startLine":3,"endLine":2}`, call.InvalidArguments, []string{"endLine"}},
		{"a ref that is none", `{"resultRef":""}`, call.InvalidArguments, []string{"`resultRef`"}},
	})
	checkRefusals(t, PortalPutTool, []refusalCase{
		{"sandbox's spelling", `{"path":"workspace/a","staged":"s","bytes":0,"sha256":"` + strings.Repeat("0", 64) + `"}`, call.PathInSandboxForm, nil},
	})
}
