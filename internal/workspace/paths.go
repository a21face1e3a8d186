package workspace

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"treeline/internal/call"
)

const (
	// PathBytes is how long a path may be, in bytes after composing.
	PathBytes = 512
	// PartBytes is how long one part of a path may be, in bytes after composing.
	PartBytes = 255
	// SandboxFolder is the working folder of code in the sandbox.
	SandboxFolder = "/work"
	// SandboxTree is the folder, below SandboxFolder, at which code sees the workspace.
	SandboxTree = "workspace"
)

// Path checks a path as a caller spelled it and gives it composed (NFC), or refuses it as path_invalid or, where it is
// the sandbox's spelling, as path_in_sandbox_form.
func Path(s string) (string, *call.Refusal) {
	p := norm.NFC.String(s)
	if rest, ok := fromSandbox(p); ok && (rest == "" || pathFault(rest) == "") {
		return "", sandboxRefusal(s, rest)
	}
	if fault := pathFault(p); fault != "" {
		return "", call.Refuse(call.PathInvalid, "The path %s cannot be used: %s. Paths are relative to the root of the "+
			`workspace, with "/" between their parts, like "notes/a.txt".%s`, quoted(s), fault, meant(p))
	}
	return p, nil
}

// FolderPath checks the path of a folder to look in: as Path, but "" is the root.
func FolderPath(s string) (string, *call.Refusal) {
	if s == "" {
		return "", nil
	}
	if strings.Trim(s, "./") == "" && !strings.Contains(s, "..") {
		return "", call.Refuse(call.PathInvalid, `The path %s cannot be used. For the root of the workspace leave "path" out; a folder `+
			`in it is named like "notes" or "notes/old".`, quoted(s))
	}
	return Path(s)
}

// pathFault says why p, which is composed, is no path, or "".
func pathFault(p string) string {
	switch {
	case p == "":
		return "it is empty"
	case !utf8.ValidString(p):
		return "it is not valid UTF-8"
	case len(p) > PathBytes:
		return fmt.Sprintf("it has %d bytes and a path has at most %d", len(p), PathBytes)
	}
	if i := strings.IndexFunc(p, unicode.IsControl); i >= 0 {
		r, _ := utf8.DecodeRuneInString(p[i:])
		return fmt.Sprintf("it has the control character U+%04X", r)
	}
	switch {
	case strings.Contains(p, `\`):
		return "it has a backslash"
	case p[0] == '/':
		return "it is absolute"
	case p[len(p)-1] == '/':
		return `it ends in "/"`
	case strings.Contains(p, "//"):
		return `it has "//"`
	}
	for part := range strings.SplitSeq(p, "/") {
		switch {
		case part == "." || part == "..":
			return fmt.Sprintf("it has the part %q", part)
		case len(part) > PartBytes:
			return fmt.Sprintf("one of its parts has %d bytes and a part has at most %d", len(part), PartBytes)
		}
	}
	return ""
}

// fromSandbox reports whether p names something in the workspace as code in the sandbox would spell it, and gives what
// is left without that: "" for the workspace itself.
func fromSandbox(p string) (rest string, ok bool) {
	rest = leading(p)
	if under, absolute := strings.CutPrefix(p, SandboxFolder+"/"); absolute {
		rest = leading(under)
	}
	for rest == SandboxTree || strings.HasPrefix(rest, SandboxTree+"/") {
		rest, ok = leading(rest[len(SandboxTree):]), true
	}
	return strings.TrimRight(rest, "/"), ok
}

// leading cuts the "/" and "./" that p begins with.
func leading(p string) string {
	for {
		switch {
		case strings.HasPrefix(p, "/"):
			p = p[1:]
		case strings.HasPrefix(p, "./"):
			p = p[2:]
		default:
			return p
		}
	}
}

func sandboxRefusal(asked, rest string) *call.Refusal {
	if rest == "" {
		return call.Refuse(call.PathInSandboxForm, "%s is what code in the sandbox calls the root of the workspace. Tools name files "+
			`from that root, like "notes/a.txt"; to list or search all of it, leave "path" out.`, quoted(asked))
	}
	return call.Refuse(call.PathInSandboxForm, "%s is how code in the sandbox spells it. Tools name files from the root of the "+
		"workspace: the path is %s.", quoted(asked), quoted(rest))
}

// meant gives a sentence with the path that the caller most likely meant by p, or "".
func meant(p string) string {
	fixed := strings.ReplaceAll(p, `\`, "/")
	if rest, ok := fromSandbox(fixed); ok {
		fixed = rest
	}
	fixed = strings.TrimPrefix(fixed, SandboxFolder+"/")
	var parts []string
	for part := range strings.SplitSeq(fixed, "/") {
		if part == ".." {
			return ""
		}
		if part != "" && part != "." {
			parts = append(parts, part)
		}
	}
	if fixed = strings.Join(parts, "/"); fixed == p || pathFault(fixed) != "" {
		return ""
	}
	return " If it lies in the workspace, its path is " + quoted(fixed) + "."
}

// quotedChars is how much of a name is quoted in a refusal.
const quotedChars = 300

// quoted spells s so that it can stand in a text for a model: in quotes, what does not print escaped, cut where it is
// very long.
func quoted(s string) string {
	if len(s) <= quotedChars {
		return strconv.Quote(s)
	}
	head := prefixChars(s, quotedChars)
	if len(head) == len(s) {
		return strconv.Quote(s)
	}
	return fmt.Sprintf("%s (the first %d of %d characters)", strconv.Quote(head), quotedChars, utf8.RuneCountInString(s))
}

// prefixChars gives the first n characters of s, or all of it.
func prefixChars(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}

// quotedList spells up to most names, the rest counted.
func quotedList(names []string, most int) string {
	var b strings.Builder
	for i, name := range names {
		if i == most {
			fmt.Fprintf(&b, " and %d more", len(names)-most)
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(quoted(name))
	}
	return b.String()
}
