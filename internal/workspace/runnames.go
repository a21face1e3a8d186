package workspace

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Ignored is something in a run's tree that is not kept, and why.
type Ignored struct {
	// Path is spelled with \xNN for bytes that are not UTF-8.
	Path   string `json:"path"`
	Reason string `json:"reason"`
}

// Spell gives a name as found in a file system as valid UTF-8: every byte that is not becomes \xNN.
func Spell(raw string) string {
	if utf8.ValidString(raw) {
		return raw
	}
	var b strings.Builder
	for i := 0; i < len(raw); {
		r, n := utf8.DecodeRuneInString(raw[i:])
		if r == utf8.RuneError && n == 1 {
			fmt.Fprintf(&b, `\x%02x`, raw[i])
		} else {
			b.WriteString(raw[i : i+n])
		}
		i += n
	}
	return b.String()
}

// FoundPath judges the name of one file in a run's tree, relative to its workspace folder and as the file system has it.
// It gives the path under which the file is kept, or the reason why it cannot be.
func FoundPath(raw string) (path, reason string) {
	if !utf8.ValidString(raw) {
		return "", "its name is not valid UTF-8"
	}
	p := norm.NFC.String(raw)
	if p == SandboxTree || strings.HasPrefix(p, SandboxTree+"/") {
		return "", fmt.Sprintf("%q within the workspace could not be named by a tool; the workspace itself is that folder", SandboxTree)
	}
	if fault := pathFault(p); fault != "" {
		return "", "its name cannot be a path here: " + fault
	}
	return p, ""
}

// FoundPaths judges the names of all files of a run's tree. Kept gives each path's raw name; ignored is sorted by path.
// Of names that are one path after composing, the one that is spelled so already is kept and the others are ignored; if
// none is, all are. So is a name that composing would put below a file.
func FoundPaths(raw []string) (kept map[string]string, ignored []Ignored) {
	names := make(map[string][]string, len(raw))
	ignore := func(name, reason string) { ignored = append(ignored, Ignored{Path: Spell(name), Reason: reason}) }
	for _, name := range raw {
		if path, reason := FoundPath(name); reason != "" {
			ignore(name, reason)
		} else {
			names[path] = append(names[path], name)
		}
	}
	kept = make(map[string]string, len(names))
	for path, spellings := range names {
		if len(spellings) == 1 {
			kept[path] = spellings[0]
			continue
		}
		for _, name := range spellings {
			if name == path {
				kept[path] = name
			} else {
				ignore(name, fmt.Sprintf("its name is the same path as another file's, %s, once composed (NFC)", quoted(path)))
			}
		}
	}
	for _, path := range belowFiles(kept) {
		ignore(kept[path], "its name, once composed (NFC), lies below a file")
		delete(kept, path)
	}
	slices.SortFunc(ignored, func(a, b Ignored) int { return strings.Compare(a.Path, b.Path) })
	return kept, ignored
}

// belowFiles gives the paths among kept that have another of them as a folder.
func belowFiles(kept map[string]string) (below []string) {
	for path := range kept {
		for folder := range folders(path) {
			if _, ok := kept[folder]; ok {
				below = append(below, path)
				break
			}
		}
	}
	return below
}
