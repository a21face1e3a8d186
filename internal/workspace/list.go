package workspace

import (
	"fmt"
	"strings"

	"treeline/internal/call"
)

// ListRequest asks for the files below a folder. Path "" is the root; it may also name one file. Glob "" is every file; a
// glob is matched against paths from the root of the workspace and also against paths from the folder.
type ListRequest struct {
	Path string `json:"path,omitempty"`
	Glob string `json:"glob,omitempty"`
}

// ListedFile is one file of a list. Lines is nil for a file that is not text.
type ListedFile struct {
	Path     string `json:"path"`
	Bytes    int64  `json:"bytes"`
	Lines    *int   `json:"lines,omitempty"`
	Revision int64  `json:"revision"`
}

// ListLimits are the limits of the workspace that a list is of.
type ListLimits struct {
	Bytes int64 `json:"bytes"`
	Files int   `json:"files"`
}

// ListData is what list_files answers to programs. Totals are of all that was asked for, listed or not.
type ListData struct {
	Files      []ListedFile `json:"files"`
	TotalFiles int          `json:"totalFiles"`
	TotalBytes int64        `json:"totalBytes"`
	// NotListed is how many of TotalFiles are past Limits.ListEntries and so not in Files.
	NotListed int        `json:"notListed,omitempty"`
	Limits    ListLimits `json:"limits"`
}

// List answers list_files: the text for a model and the same facts for programs. It refuses with the codes of Path,
// path_not_found, and invalid_arguments for a glob that is none.
func (t *Tree) List(req ListRequest, l Limits) (string, ListData, *call.Refusal) {
	data := ListData{Files: []ListedFile{}, Limits: ListLimits{l.WorkspaceBytes, l.WorkspaceFiles}}
	asked, g, refusal := t.asked(req.Path, req.Glob)
	if refusal != nil {
		return "", data, refusal
	}
	matching := g.filter(asked)
	data.TotalFiles = len(matching)
	for i, e := range matching {
		data.TotalBytes += e.Bytes
		if i < l.ListEntries {
			data.Files = append(data.Files, listed(e))
		}
	}
	data.NotListed = data.TotalFiles - len(data.Files)
	return t.listText(req, data, asked), data, nil
}

// Selected gives the files that a list or a search of path and pattern is of, sorted by path: what must be at hand before a
// search. It refuses as List does.
func (t *Tree) Selected(path, pattern string) ([]Entry, *call.Refusal) {
	asked, g, refusal := t.asked(path, pattern)
	if refusal != nil {
		return nil, refusal
	}
	return g.filter(asked), nil
}

// asked gives the files that path names and the glob that selects among them.
func (t *Tree) asked(path, pattern string) ([]Entry, glob, *call.Refusal) {
	folder, refusal := FolderPath(path)
	if refusal != nil {
		return nil, glob{}, refusal
	}
	g, refusal := newGlob(pattern, folder)
	if refusal != nil {
		return nil, glob{}, refusal
	}
	entries, refusal := t.Folder(folder)
	return entries, g, refusal
}

func listed(e Entry) ListedFile {
	f := ListedFile{Path: e.Path, Bytes: e.Bytes, Revision: e.Revision}
	if e.Kind == Text {
		f.Lines = &e.Lines
	}
	return f
}

func (t *Tree) listText(req ListRequest, data ListData, asked []Entry) string {
	var b strings.Builder
	for _, f := range data.Files {
		if f.Lines != nil {
			fmt.Fprintf(&b, "%s  %d bytes, %d lines, revision %d\n", f.Path, f.Bytes, *f.Lines, f.Revision)
		} else {
			fmt.Fprintf(&b, "%s  %d bytes, not text, revision %d\n", f.Path, f.Bytes, f.Revision)
		}
	}
	switch {
	case t.Len() == 0:
		b.WriteString("The workspace is empty.\n")
	case data.TotalFiles == 0:
		b.WriteString(globHint(req.Glob, asked))
	}
	fmt.Fprintf(&b, "%d files, %d bytes", data.TotalFiles, data.TotalBytes)
	if data.TotalFiles != t.Len() {
		fmt.Fprintf(&b, " (of %d files, %d bytes in the workspace)", t.Len(), t.bytes)
	}
	fmt.Fprintf(&b, "; the limits are %d files and %d bytes%s.", data.Limits.Files, data.Limits.Bytes, inMiB(data.Limits.Bytes))
	if data.NotListed > 0 {
		fmt.Fprintf(&b, "\n%s", cutNotice("%d more files are counted but not listed; name a folder with path, or a glob", data.NotListed))
	}
	return b.String()
}

// globHint says that a glob selected none of the files that it was tried on, and what would.
func globHint(pattern string, asked []Entry) string {
	deep, refusal := newGlob("**/"+pattern, "")
	if refusal == nil && !strings.HasPrefix(pattern, "**/") {
		if n := len(deep.filter(asked)); n > 0 {
			return fmt.Sprintf(`No file matches the glob %s. "*" does not cross "/": %s would match %d.`+"\n", quoted(pattern),
				quoted("**/"+pattern), n)
		}
	}
	return fmt.Sprintf("No file matches the glob %s.\n", quoted(pattern))
}
