package input

import (
	"fmt"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"treeline/internal/workspace"
)

// names gives each mount of a call a path of its own.
type names struct{ taken map[string]bool }

func newNames() *names { return &names{taken: map[string]bool{}} }

// reserve takes a path if it is free.
func (n *names) reserve(path string) bool {
	if n.taken[path] {
		return false
	}
	n.taken[path] = true
	return true
}

// unique takes the folder's first free name of base + ending, "base (2)" + ending and so on, at most PartBytes long.
// Names that are in wanted are somebody else's own: no number makes one of those.
func (n *names) unique(folder, base, ending string, wanted map[string]int) string {
	for i := 1; ; i++ {
		number := ""
		if i > 1 {
			number = fmt.Sprintf(" (%d)", i)
		}
		name := prefixBytes(base, workspace.PartBytes-len(number)-len(ending)) + number + ending
		if i > 1 && wanted[name] > 0 {
			continue
		}
		if p := folder + "/" + name; n.reserve(p) {
			return p
		}
	}
}

// safe makes of any name one that can be a file's: no separators, no control characters, not "." or "..".
func safe(name string) string {
	name = norm.NFC.String(strings.ToValidUTF8(name, "_"))
	name = strings.Map(func(r rune) rune {
		if r == '/' || r == '\\' || unicode.IsControl(r) {
			return '_'
		}
		return r
	}, name)
	if strings.Trim(name, ". ") == "" {
		name = "_" + strings.ReplaceAll(name, ".", "_")
	}
	return name
}

// split cuts a safe name into what comes before its ending and the ending.
func split(name string) (base, ending string) {
	const longest = 32
	ending = path.Ext(name)
	if len(ending) > longest || len(ending) == len(name) {
		return name, ""
	}
	return name[:len(name)-len(ending)], ending
}

// prefixBytes gives at most n bytes of s, whole characters.
func prefixBytes(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
