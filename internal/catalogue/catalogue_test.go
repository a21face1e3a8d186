package catalogue

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"treeline/internal/call"
	"treeline/internal/workspace"
)

func TestTheCatalogue(t *testing.T) {
	c := load(t)
	want := []struct {
		name   string
		lane   Lane
		effect Effect
		kind   string
	}{
		{"list_files", LaneFile, Read, "workspace_read"},
		{"search_files", LaneFile, Read, "workspace_read"},
		{"read_file", LaneFile, Read, "workspace_read"},
		{"write_file", LaneFile, Change, "workspace_write"},
		{"edit_file", LaneFile, Change, "workspace_write"},
		{"delete_file", LaneFile, Change, "workspace_write"},
		{"move_file", LaneFile, Change, "workspace_write"},
		{"run_code", LaneCode, Change, "code"},
		{"calculate", LaneNone, Read, "arithmetic"},
		{"save_artifact", LaneFile, Change, "artifact"},
		{"edit_artifact", LaneFile, Change, "artifact"},
		{"load_skill", LaneNone, Read, "skill"},
		{"read_result", LaneNone, Read, "result"},
	}
	var names []string
	for _, w := range want {
		names = append(names, w.name)
		got, ok := c.Tool(w.name)
		if !ok || got.Lane != w.lane || got.Effect != w.effect || got.Kind != w.kind || got.Portal {
			t.Errorf("%s: %+v", w.name, got)
		}
		if len(got.Description) < 80 || strings.Contains(got.Description, "{installed}") {
			t.Errorf("%s is described as %q", w.name, got.Description)
		}
		var published map[string]any
		if err := json.Unmarshal(got.Schema, &published); err != nil {
			t.Errorf("%s: %v", w.name, err)
		}
		if published["type"] != "object" || published["additionalProperties"] != false || published["description"] != nil || published["title"] != nil {
			t.Errorf("%s is published as %s", w.name, got.Schema)
		}
	}
	if got := c.Names(); !slices.Equal(got, names) {
		t.Errorf("the tools are %v, want %v", got, names)
	}
}

func TestOffered(t *testing.T) {
	c := load(t)
	var got []string
	for _, tool := range c.Offered([]string{"run_code", "no_such_tool", "portal_put", "read_file", "run_code", ""}) {
		got = append(got, tool.Name)
	}
	if !slices.Equal(got, []string{"read_file", "run_code"}) {
		t.Errorf("offered %v", got)
	}
	if len(c.Offered(nil)) != 0 {
		t.Error("no names offer something")
	}
}

func TestThePortalsCallsAreNeverOffered(t *testing.T) {
	c := load(t)
	names := []string{PortalPutTool, PortalDeleteTool, PortalRevertTool}
	for _, name := range names {
		tool, ok := c.Tool(name)
		if !ok || !tool.Portal || tool.Lane != LaneFile || tool.Effect != Change {
			t.Errorf("%s: %+v", name, tool)
		}
		if c.Offers(names, name) || slices.Contains(c.Names(), name) {
			t.Errorf("%s can be offered", name)
		}
	}
	if !c.Offers([]string{"read_file"}, "read_file") || c.Offers([]string{"read_file"}, "run_code") || c.Offers([]string{"x"}, "x") {
		t.Error("Offers is wrong about tools")
	}
}

func TestWithInstalled(t *testing.T) {
	c := load(t)
	w := c.WithInstalled("Python 3.12; numpy 2.1").WithInstalled("Python 3.13; pandas 2.2")
	before, _ := c.Tool(RunCodeTool)
	after, _ := w.Tool(RunCodeTool)
	if !strings.Contains(after.Description, "Installed: Python 3.13; pandas 2.2.") || strings.Contains(after.Description, "numpy") {
		t.Error(after.Description)
	}
	if strings.Contains(before.Description, "pandas") {
		t.Error("the first catalogue changed")
	}
	if _, r := w.Check(RunCodeTool, []byte(`{"code":"1"}`)); r != nil {
		t.Error(r)
	}
}

func TestWithLimits(t *testing.T) {
	c := load(t)
	limits := workspace.DefaultLimits()
	for _, name := range c.Names() {
		before, _ := c.Tool(name)
		after, _ := c.WithLimits(limits).Tool(name)
		if before.Description != after.Description {
			t.Errorf("%s states other defaults than those of the code:\n%s\n%s", name, before.Description, after.Description)
		}
	}
	for _, s := range statements {
		if tool, _ := c.Tool(s.tool); strings.Count(tool.Description, s.words) != 1 {
			t.Errorf("%s does not say %q once", s.tool, s.words)
		}
	}
	limits.ListEntries, limits.ReadChars, limits.RunTime, limits.RunMemoryBytes = 50, 1_234_567, time.Minute, 1536<<20
	w := c.WithInstalled("numpy").WithLimits(limits)
	for name, part := range map[string]string{ListFilesTool: "At most 50 files", ReadFileTool: "1,234,567 characters", RunCodeTool: "60 seconds unless"} {
		if tool, _ := w.Tool(name); !strings.Contains(tool.Description, part) {
			t.Errorf("%s does not say %q: %s", name, part, tool.Description)
		}
	}
	if tool, _ := w.Tool(RunCodeTool); !strings.Contains(tool.Description, "1536 MiB") || !strings.Contains(tool.Description, "Installed: numpy.") {
		t.Error(tool.Description)
	}
}

func TestClosest(t *testing.T) {
	read := []string{"endLine", "files", "path", "startColumn", "startLine"}
	edit := []string{"all", "anchor", "endLine", "expectedMatches", "find", "replace", "startLine", "text"}
	for _, tc := range []struct {
		name  string
		known []string
		want  string
	}{
		{"start_line", read, "startLine"}, {"StartLine", read, "startLine"}, {"end", read, "endLine"}, {"line", read, "startLine"},
		{"file", read, "path"}, {"file_path", read, "path"}, {"pth", read, "path"}, {"old_string", edit, "find"}, {"new_text", edit, "replace"},
		{"anchors", edit, "anchor"}, {"zzzzzz", read, ""}, {"", read, ""}, {"encoding", []string{"from", "to"}, ""}, {strings.Repeat("path", 1000), read, ""},
	} {
		if got := closest(tc.name, tc.known); got != tc.want {
			t.Errorf("%.20s is taken for %q, want %q", tc.name, got, tc.want)
		}
	}
}

func TestPublishedSchemasKeepTheirOrder(t *testing.T) {
	tool, _ := load(t).Tool(WriteFileTool)
	path, content, files := strings.Index(string(tool.Schema), `"path"`), strings.Index(string(tool.Schema), `"content"`), strings.Index(string(tool.Schema), `"files"`)
	if path < 0 || path > content || content > files {
		t.Errorf("path at %d, content at %d, files at %d", path, content, files)
	}
}

// Each numbers that a description states is the one that holds.
func TestDescriptionsStateTheRules(t *testing.T) {
	c := load(t)
	for name, says := range map[string][]string{
		ListFilesTool:   {"1,000"},
		SearchFilesTool: {"literal", "up to 5", "20,000"},
		ReadFileTool:    {"40,000", "2,000", "up to 10", "number, tab, text", "closing newline"},
		WriteFileTool:   {"exactly one of content and source", "up to 3", "4,000", "edit_file"},
		EditFileTool:    {"exactly once", "anchor", "startLine - 1", "read_file", "not overlap"},
		DeleteFileTool:  {"up to 20"},
		RunCodeTool:     {"only what is left below workspace/ is kept", "Name files", "Print a figure", "120", "1 GiB", "without network"},
		CalculateTool:   {"up to 20", "12 significant", "no %"},
	} {
		tool, _ := c.Tool(name)
		for _, part := range says {
			if !strings.Contains(tool.Description, part) {
				t.Errorf("%s does not say %q", name, part)
			}
		}
	}
}

func TestDecodeOfNoTool(t *testing.T) {
	if _, err := Decode("no_such_tool", []byte(`{}`)); err == nil {
		t.Error("a tool that is not has arguments")
	}
	for name := range decoders {
		if _, err := Decode(name, []byte(`{`)); err == nil {
			t.Errorf("%s decodes what is no JSON", name)
		}
	}
	var refusal *call.Refusal
	if _, refusal = load(t).Check(ListFilesTool, nil); refusal != nil {
		t.Error(refusal)
	}
}
