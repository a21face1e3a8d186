package catalogue

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/text/unicode/norm"

	"treeline/internal/call"
	"treeline/internal/workspace"
)

const (
	// maxNamed bounds the paths that are kept of one call: more than any call that is let in names.
	maxNamed = 128
	// maxNamedBytes bounds what is kept of one path: more than a path can have.
	maxNamedBytes = 1024
)

// The fields that name paths, in the order in which they are looked at.
var (
	pathFields     = []string{"path", "from", "to"}
	pathListFields = []string{"paths", "sources"}
)

// named collects paths as they go into a trace.
type named struct {
	paths []string
}

func (n *named) add(v any) {
	s, ok := v.(string)
	if !ok || len(n.paths) >= maxNamed {
		return
	}
	if s = presentable(s); s != "" && !slices.Contains(n.paths, s) {
		n.paths = append(n.paths, s)
	}
}

// namedPaths gives the paths that a call names, as far as they can be made out.
func namedPaths(values map[string]any) []string {
	n := &named{}
	for _, field := range pathFields {
		n.add(values[field])
	}
	for _, field := range pathListFields {
		n.addAll(values[field])
	}
	switch files := values["files"].(type) {
	case []any:
		for _, entry := range files {
			switch entry := entry.(type) {
			case map[string]any:
				n.add(entry["path"])
			case string:
				n.guess(entry)
			}
		}
	case string:
		n.guess(files)
	}
	return n.paths
}

func (n *named) addAll(v any) {
	list, _ := v.([]any)
	for _, s := range list {
		n.add(s)
	}
}

// pathMember finds members called path, from and to in JSON that need not be whole. Within an encoded string their quotes
// are escaped, so that text in a content is not taken for a member.
var pathMember = regexp.MustCompile(`"(?:path|from|to)"\s*:\s*("(?:[^"\\]|\\.)*")`)

// guessPaths gives the paths that broken JSON seems to name: a write that could not be read was a write of these.
func guessPaths(raw []byte) []string {
	n := &named{}
	n.guess(string(raw))
	return n.paths
}

func (n *named) guess(text string) {
	for _, m := range pathMember.FindAllStringSubmatch(text, maxNamed) {
		var s string
		if json.Unmarshal([]byte(m[1]), &s) == nil {
			n.add(s)
		}
	}
}

// presentable gives a path that was named in the form in which it can be kept and compared: composed, out of the
// sandbox's spelling, valid, without U+0000, and not too long.
func presentable(s string) string {
	s = norm.NFC.String(cut(strings.ToValidUTF8(s, "\ufffd"), maxNamedBytes))
	s = cut(strings.ReplaceAll(s, "\x00", "\ufffd"), maxNamedBytes)
	if _, r := workspace.Path(s); r != nil && r.Code == call.PathInSandboxForm {
		if p := outOfSandbox(s); p != "" {
			return p
		}
	}
	return s
}

// outOfSandbox gives the path that a spelling of the sandbox means, or "".
func outOfSandbox(s string) string {
	for {
		before := s
		s = strings.TrimPrefix(strings.TrimPrefix(s, "./"), "/")
		s = strings.TrimPrefix(s, strings.TrimPrefix(workspace.SandboxFolder, "/")+"/"+workspace.SandboxTree+"/")
		s = strings.TrimPrefix(s, workspace.SandboxTree+"/")
		if s == before {
			break
		}
	}
	p, r := workspace.Path(s)
	if r != nil {
		return ""
	}
	return p
}

// cut gives the first n bytes of s at most, not splitting a character.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && s[n]&0xC0 == 0x80 {
		n--
	}
	return s[:n]
}
