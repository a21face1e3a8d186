package workspace

import (
	"iter"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"

	"treeline/internal/call"
)

// folders yields the folders that path lies in, outermost first, the root left out.
func folders(path string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := range len(path) {
			if path[i] == '/' && !yield(path[:i]) {
				return
			}
		}
	}
}

// CheckNames checks the paths that one call would write, as a batch: none twice (path_clash), none where a folder is or
// below a file, in the tree or in the batch (path_clash), and no new name, of a folder neither, that differs from another
// only by case or compatibility form (path_lookalike). Paths that are files already may be among them. What the call
// takes away in the same stroke, as a move does, is named by leaving and counts as gone.
func (t *Tree) CheckNames(paths []string, leaving ...string) *call.Refusal {
	if len(leaving) > 0 {
		t = t.without(leaving)
	}
	if r := t.checkClash(paths); r != nil {
		return r
	}
	return t.checkLookalike(paths)
}

func (t *Tree) without(paths []string) *Tree {
	rest := make([]Entry, 0, len(t.entries))
	for i := range t.entries {
		if !slices.Contains(paths, t.entries[i].Path) {
			rest = append(rest, t.entries[i])
		}
	}
	return NewTree(rest)
}

func (t *Tree) checkClash(paths []string) *call.Refusal {
	batch := make(map[string]bool, len(paths))
	for _, p := range paths {
		if batch[p] {
			return call.Refuse(call.PathClash, "The path %s is named twice in this call. Name each path once.", quoted(p))
		}
		batch[p] = true
	}
	for _, p := range paths {
		if t.IsFolder(p) {
			return call.Refuse(call.PathClash, "%s is a folder, so no file can have that path. It holds %s. Choose another name, or a "+
				"path in the folder.", quoted(p), t.contents(p))
		}
		for folder := range folders(p) {
			if _, ok := t.Get(folder); ok {
				return call.Refuse(call.PathClash, "%s is a file, so nothing can lie below it and %s cannot be written. Choose another "+
					"folder, or move the file away first.", quoted(folder), quoted(p))
			}
			if batch[folder] {
				return call.Refuse(call.PathClash, "This call names %s as a file and, with %s, as a folder. It can be only one of them.",
					quoted(folder), quoted(p))
			}
		}
	}
	return nil
}

// checkLookalike compares only names that are new with those that are there and with one another.
func (t *Tree) checkLookalike(paths []string) *call.Refusal {
	fresh := map[string]string{} // by form
	for _, p := range paths {
		for name := range withFolders(p) {
			if _, ok := t.Get(name); ok || t.IsFolder(name) {
				continue
			}
			form := lookalikeForm(name)
			if other, ok := fresh[form]; ok && other != name {
				return lookalike(p, name, other, "another name in this call")
			}
			fresh[form] = name
		}
	}
	if len(fresh) == 0 {
		return nil
	}
	for there := range t.names() {
		name, ok := fresh[lookalikeForm(there)]
		if !ok {
			continue
		}
		for _, p := range paths {
			if p == name || strings.HasPrefix(p, name+"/") {
				return lookalike(p, name, there, "what is there already")
			}
		}
	}
	return nil
}

func lookalike(path, name, other, what string) *call.Refusal {
	return call.Refuse(call.PathLookalike, "%s cannot be written: %s differs from %s, %s, only by case or by compatible characters, and "+
		"people and other systems would take the two for one. Use %s, or a name that differs more.",
		quoted(path), quoted(name), quoted(other), what, quoted(other+path[len(name):]))
}

// withFolders yields the folders of path and path itself.
func withFolders(path string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for folder := range folders(path) {
			if !yield(folder) {
				return
			}
		}
		yield(path)
	}
}

// names yields every file and folder of the tree once, folders before what is in them.
func (t *Tree) names() iter.Seq[string] {
	return func(yield func(string) bool) {
		last := ""
		for i := range t.entries {
			path := t.entries[i].Path
			for folder := range folders(path) {
				if strings.HasPrefix(last, folder+"/") {
					continue
				}
				if !yield(folder) {
					return
				}
			}
			if !yield(path) {
				return
			}
			last = path
		}
	}
}

// lookalikeForm is equal for names that differ only by case or compatibility form.
func lookalikeForm(name string) string {
	if isASCII(name) {
		return strings.ToLower(name)
	}
	fold := cases.Fold()
	form := norm.NFKC.String(fold.String(norm.NFKC.String(name)))
	return norm.NFKC.String(fold.String(form))
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
