package catalogue

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"treeline/internal/workspace"
)

// statement is a limit as a description has it, in the words of its default.
type statement struct {
	tool, words string
	say         func(l workspace.Limits) string
}

var statements = []statement{
	{ListFilesTool, "1,000 files", func(l workspace.Limits) string { return grouped(l.ListEntries) + " files" }},
	{SearchFilesTool, "20,000 characters", func(l workspace.Limits) string { return grouped(l.SearchChars) + " characters" }},
	{ReadFileTool, "40,000 characters", func(l workspace.Limits) string { return grouped(l.ReadChars) + " characters" }},
	{ReadFileTool, "2,000 lines", func(l workspace.Limits) string { return grouped(l.ReadLines) + " lines" }},
	{WriteFileTool, "4,000 characters", func(l workspace.Limits) string { return grouped(l.ReplacementChars) + " characters" }},
	{RunCodeTool, "120 seconds", func(l workspace.Limits) string { return grouped(int(l.RunTime/time.Second)) + " seconds" }},
	{RunCodeTool, "1 GiB", func(l workspace.Limits) string { return binary(l.RunMemoryBytes) }},
	{ReadResultTool, "40,000 characters", func(l workspace.Limits) string { return grouped(l.ReadChars) + " characters" }},
	{ReadResultTool, "2,000 lines", func(l workspace.Limits) string { return grouped(l.ReadLines) + " lines" }},
}

// WithLimits gives a catalogue whose descriptions state the given limits in place of the defaults. It is asked of what
// Load gave, before WithInstalled or after. The catalogue it is asked of stays as it is.
func (c *Catalogue) WithLimits(l workspace.Limits) *Catalogue {
	w := &Catalogue{tools: slices.Clone(c.tools), byName: c.byName, installed: c.installed}
	for _, s := range statements {
		t := &w.tools[c.byName[s.tool]]
		t.template = strings.Replace(t.template, s.words, s.say(l), 1)
	}
	return w.WithInstalled(w.installed)
}

// grouped writes 40000 as 40,000.
func grouped(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// binary writes a number of bytes in the largest unit of which it is a multiple.
func binary(n int64) string {
	for _, unit := range []struct {
		bytes int64
		name  string
	}{{1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}} {
		if n > 0 && n%unit.bytes == 0 {
			return fmt.Sprintf("%d %s", n/unit.bytes, unit.name)
		}
	}
	return grouped(int(n)) + " bytes"
}
