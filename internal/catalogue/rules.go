package catalogue

import (
	"fmt"
	"strings"

	"treeline/internal/call"
	"treeline/internal/workspace"
)

// checkShape checks what the schema cannot say and what needs no paths: which fields go together, ids, ranges.
func (a *arguments) checkShape() *call.Refusal {
	switch args := a.typed.(type) {
	case ListFiles:
		return a.checkGlob(args.Glob)
	case SearchFiles:
		return a.checkGlob(args.Glob)
	case ReadFile:
		return a.checkRead(args)
	case WriteFile:
		return a.checkWrite(args)
	case EditFile:
		return workspace.CheckEdits(args.Edits)
	case DeleteFile:
		return a.checkOneForm("paths")
	case RunCode:
		return a.checkRun(args)
	case SaveArtifact:
		if args.ArtifactID == "" && a.values["artifactId"] == nil {
			return nil
		}
		return a.checkID("artifactId", args.ArtifactID)
	case EditArtifact:
		return a.checkEditArtifact(args)
	case LoadSkill:
		return a.checkID("name", args.Name)
	case ReadResult:
		if r := a.checkID("resultRef", args.ResultRef); r != nil {
			return r
		}
		return workspace.Span{StartLine: args.StartLine, EndLine: args.EndLine, StartColumn: args.StartColumn}.Check()
	}
	return nil
}

// checkComposed checks what is left once every path is a path: how those of one call go together, and contents.
func (a *arguments) checkComposed() *call.Refusal {
	if a.encoded == nil { // a path was composed
		if r := a.decode(); r != nil {
			return r
		}
	}
	switch args := a.typed.(type) {
	case DeleteFile:
		return checkTwice(args.Paths)
	case WriteFile:
		paths := make([]string, len(args.Files))
		for i, f := range args.Files {
			paths[i] = f.Path
		}
		if r := workspace.NewTree(nil).CheckNames(paths); r != nil {
			return r
		}
		for i, f := range args.Files {
			if f.Content != nil && workspace.EndsInCutNotice(*f.Content) {
				return call.Refuse(call.TrimmedContent, "Nothing was written: the %s for %s ends in the words by which a shortened text here says "+
					"that it is not whole, so the rest would be lost. If the file exists, read it with read_file and change it with edit_file. To "+
					"store a tool's result, name it with source; else write the whole text.", a.entryField(args.Single, i, "content"), quoted(f.Path))
			}
		}
	}
	return nil
}

// checkGlob has a tree without files judge a glob.
func (a *arguments) checkGlob(glob string) *call.Refusal {
	_, _, r := workspace.NewTree(nil).List(workspace.ListRequest{Glob: glob}, workspace.DefaultLimits())
	return r
}

// checkOneForm refuses a call that has neither path nor the field that names several, or that has both, or that has a
// field of the first form beside the second.
func (a *arguments) checkOneForm(several string, alone ...string) *call.Refusal {
	_, single := a.values["path"]
	_, batch := a.values[several]
	switch {
	case !single && !batch:
		return a.tool.refuse([]string{"path"}, "`path` is missing: give `path`, or `%s` for several", several)
	case single && batch:
		return a.tool.refuse([]string{several}, "`path` and `%s` are both there: give one of them", several)
	case single:
		return nil
	}
	for _, field := range alone {
		if _, ok := a.values[field]; ok {
			return a.tool.refuse([]string{several}, "`%s` stands beside `%s`, but it belongs into an entry of `%s`", field, several, several)
		}
	}
	return nil
}

func (a *arguments) checkRead(args ReadFile) *call.Refusal {
	if r := a.checkOneForm("files", "startLine", "endLine", "startColumn"); r != nil {
		return r
	}
	for i, f := range args.Files {
		if f.EndLine != 0 && f.EndLine < max(f.StartLine, 1) {
			return a.tool.refuse([]string{"startLine"}, "%s must be %d or more, the `startLine`, and %d came",
				a.entryField(args.Single, i, "endLine"), max(f.StartLine, 1), f.EndLine)
		}
	}
	return nil
}

func (a *arguments) checkWrite(args WriteFile) *call.Refusal {
	if r := a.checkOneForm("files", "content", "source"); r != nil {
		return r
	}
	for i, f := range args.Files {
		if (f.Content != nil) != (f.Source != nil) {
			continue
		}
		came := "both came"
		if f.Content == nil {
			came = "neither came"
		}
		return call.Refuse(call.ContentAndSource, "Nothing was written: %s takes exactly one of `content` and `source`, and %s. Give the whole "+
			"text as content, or name a stored result as source. Example: %s", theEntry(args.Single, i, f.Path), came, a.tool.example("content"))
	}
	for i, f := range args.Files {
		if f.Source == nil {
			continue
		}
		if r := a.checkID(a.entryName(args.Single, i, "source.toolResult"), f.Source.ToolResult); r != nil {
			return r
		}
		if p := f.Source.Pointer; p != nil && !isPointer(*p) {
			return a.tool.refuse([]string{"source"}, `%s must be a JSON Pointer: empty, or "/" before each key, "~" written "~0" and "/" in a key "~1"; %s came`,
				a.entryField(args.Single, i, "source.pointer"), describe(*p))
		}
	}
	return nil
}

// isPointer reports whether s is a JSON Pointer (RFC 6901).
func isPointer(s string) bool {
	if s != "" && s[0] != '/' {
		return false
	}
	for i := range len(s) {
		if s[i] == '~' && (i+1 == len(s) || s[i+1] != '0' && s[i+1] != '1') {
			return false
		}
	}
	return true
}

func (a *arguments) checkRun(args RunCode) *call.Refusal {
	for i, f := range args.Files {
		if r := a.checkID(item("files", i)+".id", f.ID); r != nil {
			return r
		}
	}
	for i, f := range args.Artifacts {
		if r := a.checkID(item("artifacts", i)+".id", f.ID); r != nil {
			return r
		}
	}
	for i, ref := range args.ToolResults {
		if r := a.checkID(item("toolResults", i), ref); r != nil {
			return r
		}
	}
	for i, name := range args.Skills {
		if r := a.checkID(item("skills", i), name); r != nil {
			return r
		}
	}
	return nil
}

func (a *arguments) checkEditArtifact(args EditArtifact) *call.Refusal {
	if r := a.checkID("artifactId", args.ArtifactID); r != nil {
		return r
	}
	if args.Find == "" {
		return call.Refuse(call.EmptyFind, "Nothing was changed: `find` is empty, and an empty text is everywhere. Give the exact text to replace, "+
			"with enough around it to be there only once. Example: %s", a.tool.example("find"))
	}
	return nil
}

func (a *arguments) checkID(field, id string) *call.Refusal {
	if call.ValidID(id) {
		return nil
	}
	top, _, _ := strings.Cut(field, "[")
	top, _, _ = strings.Cut(top, ".")
	return a.tool.refuse([]string{top}, "`%s` must be an id as it was given to you (1 to 64 of A-Z a-z 0-9 _ -), and %s came", field, describe(id))
}

func checkTwice(paths []string) *call.Refusal {
	seen := make(map[string]bool, len(paths))
	for _, p := range paths {
		if seen[p] {
			return call.Refuse(call.PathClash, "The path %s is named twice in this call. Name each path once.", quoted(p))
		}
		seen[p] = true
	}
	return nil
}

// entryName spells a field of a call that names one file, or of the entry i of one that names several.
func (a *arguments) entryName(single bool, i int, field string) string {
	if single {
		return field
	}
	return item("files", i) + "." + field
}

func (a *arguments) entryField(single bool, i int, field string) string {
	return "`" + a.entryName(single, i, field) + "`"
}

func theEntry(single bool, i int, path string) string {
	if single {
		return "write_file of " + quoted(path)
	}
	return fmt.Sprintf("`%s` (%s)", item("files", i), quoted(path))
}
