// Package artifact keeps what is meant to outlive a conversation: versions of documents, charts, web pages, texts and
// other files, each with its owner, with whom it is shared, and what it was made from.
package artifact

import (
	"path"
	"regexp"
	"strings"

	"treeline/internal/workspace"
)

// Kind says what an artifact is to the people who look at it.
type Kind string

// The kinds. All but File are text.
const (
	Document Kind = "document"
	Chart    Kind = "chart"
	Web      Kind = "web"
	Text     Kind = "text"
	File     Kind = "file"
)

// Kinds are all kinds.
var Kinds = []Kind{Document, Chart, Web, Text, File}

// Textual reports whether an artifact of the kind can be edited as text.
func (k Kind) Textual() bool { return k != File }

// KindOf is the kind of an artifact that a workspace's file becomes. A kind of text gives an artifact the kind's ending
// wherever it is mounted, so that a file whose own ending says more (a table, a program) stays a file.
func KindOf(name string, text bool) Kind {
	if !text {
		return File
	}
	lower := strings.ToLower(path.Base(name))
	if strings.HasSuffix(lower, ".vl.json") || strings.HasSuffix(lower, ".vg.json") {
		return Chart
	}
	switch path.Ext(lower) {
	case ".md", ".markdown":
		return Document
	case ".html", ".htm":
		return Web
	case ".txt", ".text", "":
		return Text
	}
	return File
}

var ending = regexp.MustCompile(`(\.tar)?\.[A-Za-z0-9]{1,16}$`)

// Ending is what a mounted artifact's name ends in: that of its kind, or, of a file, its own, which may be none.
func (k Kind) Ending(name string) string {
	switch k {
	case Document:
		return ".md"
	case Chart:
		return ".json"
	case Web:
		return ".html"
	case Text:
		return ".txt"
	}
	base := path.Base(name)
	at := ending.FindStringIndex(base)
	if at == nil || at[0] == 0 { // a name that is nothing but an ending has none
		return ""
	}
	return base[at[0]:]
}

// FileName is the name under which a person gets an artifact: its own, with an ending.
func (k Kind) FileName(name string) string {
	if File.Ending(name) == "" {
		name += k.Ending(name)
	}
	return name
}

// MIMEType is what an artifact is served as.
func (k Kind) MIMEType(name string, head []byte) string {
	return workspace.MIMEType(k.FileName(name), head)
}
