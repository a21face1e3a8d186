package catalogue

import (
	"treeline/internal/call"
	"treeline/internal/workspace"
)

// composePaths checks every path that the call names and puts the composed form in its place.
func (a *arguments) composePaths() *call.Refusal {
	for _, field := range pathFields {
		if s, ok := a.values[field].(string); ok {
			if r := a.compose(field, s, func(p string) { a.values[field] = p }); r != nil {
				return r
			}
		}
	}
	for _, field := range pathListFields {
		list, _ := a.values[field].([]any)
		for i := range list {
			s, _ := list[i].(string)
			if r := a.compose(item(field, i), s, func(p string) { list[i] = p }); r != nil {
				return r
			}
		}
	}
	return a.composeFiles()
}

// composeFiles checks the paths of a batch. In a batch of reads one that is no path fails alone, later, unless all do.
func (a *arguments) composeFiles() *call.Refusal {
	files, _ := a.values["files"].([]any)
	var first *call.Refusal
	good := 0
	for i := range files {
		entry, _ := files[i].(map[string]any)
		s, ok := entry["path"].(string)
		if !ok {
			continue
		}
		r := a.compose(item("files", i)+".path", s, func(p string) { entry["path"] = p })
		switch {
		case r == nil:
			good++
		case a.tool.Name != ReadFileTool:
			return r
		case first == nil:
			first = r
		}
	}
	if good > 0 {
		return nil
	}
	return first
}

func (a *arguments) compose(field, s string, put func(string)) *call.Refusal {
	if s == "" && (a.tool.Name == ListFilesTool || a.tool.Name == SearchFilesTool) {
		return call.Refuse(call.PathInvalid, "`%s` is empty, which is no path. For the whole workspace leave it out.", field)
	}
	check := workspace.Path
	if a.tool.Name == ListFilesTool || a.tool.Name == SearchFilesTool {
		check = workspace.FolderPath
	}
	p, r := check(s)
	if r != nil {
		return r
	}
	if p != s {
		put(p)
		a.mended()
	}
	return nil
}
