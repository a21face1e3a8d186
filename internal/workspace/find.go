package workspace

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"treeline/internal/call"
)

// nearNames is how many paths a refusal names.
const nearNames = 5

// Find gives the file at path, or refuses: path_is_folder, naming what is in it, or path_not_found, naming the closest
// few files that are there.
func (t *Tree) Find(path string) (Entry, *call.Refusal) {
	if e, ok := t.Get(path); ok {
		return e, nil
	}
	if t.IsFolder(path) && path != "" {
		return Entry{}, call.Refuse(call.PathIsFolder, "%s is a folder, not a file. It holds %s. Name the file itself.", quoted(path),
			t.contents(path))
	}
	return Entry{}, t.notFound(path, "file")
}

// Folder gives the files below a folder, or the one file at path, in order of path; "" is the root. Where there is neither it
// refuses with path_not_found.
func (t *Tree) Folder(path string) ([]Entry, *call.Refusal) {
	if e, ok := t.Get(path); ok {
		return []Entry{e}, nil
	}
	if !t.IsFolder(path) {
		return nil, t.notFound(path, "file or folder")
	}
	return t.Below(path), nil
}

func (t *Tree) contents(folder string) string {
	var names []string
	for _, e := range t.Below(folder) {
		names = append(names, e.Path)
	}
	return quotedList(names, 2*nearNames)
}

func (t *Tree) notFound(path, what string) *call.Refusal {
	if first, _, _ := strings.Cut(path, "/"); first == "inputs" || first == "skills" {
		return call.Refuse(call.PathNotFound, "There is no %s %s in the workspace. What run_code mounts at %s is there only while code runs: "+
			"read it in the code, and print or write to %s what is needed of it.", what, quoted(path), quoted(first+"/"), quoted(SandboxTree+"/"))
	}
	if t.Len() == 0 {
		return call.Refuse(call.PathNotFound, "There is no %s %s: the workspace is empty.", what, quoted(path))
	}
	near := t.near(path, what != "file")
	if len(near) == t.Len() {
		return call.Refuse(call.PathNotFound, "There is no %s %s. The workspace holds %s.", what, quoted(path), quotedList(near, nearNames))
	}
	return call.Refuse(call.PathNotFound, "There is no %s %s. The closest that are there: %s. list_files names all %d.", what,
		quoted(path), quotedList(near, nearNames), t.Len())
}

// near gives up to nearNames names, the closest to path first: with folders among them if asked.
func (t *Tree) near(path string, withFolders bool) []string {
	type candidate struct {
		name  string
		score int
	}
	var found []candidate
	want := newWanted(path)
	for name := range t.names() {
		if _, isFile := t.Get(name); isFile || withFolders {
			found = append(found, candidate{name, want.score(name)})
		}
	}
	slices.SortStableFunc(found, func(a, b candidate) int { return cmp.Compare(a.score, b.score) })
	var near []string
	for _, c := range found[:min(nearNames, len(found))] {
		near = append(near, c.name)
	}
	return near
}

// wanted is a path that is not there, prepared for comparing.
type wanted struct {
	folder, base, form, baseForm string
	chars                        []rune
	slack                        int
}

// maxSlack bounds the edit distance that is looked for, and so its cost.
const maxSlack = 8

func newWanted(path string) wanted {
	folder, base := splitPath(path)
	w := wanted{folder: folder, base: base, form: lookalikeForm(path), baseForm: lookalikeForm(base)}
	w.chars = []rune(w.baseForm)
	w.slack = min(maxSlack, max(2, len(w.chars)/3))
	return w
}

func splitPath(path string) (folder, base string) {
	i := strings.LastIndexByte(path, '/')
	return path[:max(i, 0)], path[i+1:]
}

// score is lower for closer names. Equal but for case comes first, then the same name in another folder, then a name that
// takes few changes, then one with the same stem or in the same folder, then any.
func (w wanted) score(name string) int {
	folder, base := splitPath(name)
	elsewhere := 1
	if folder == w.folder {
		elsewhere = 0
	}
	form := lookalikeForm(base)
	switch {
	case lookalikeForm(name) == w.form:
		return 0
	case form == w.baseForm:
		return 1
	}
	if utf8.RuneCountInString(form) <= len(w.chars)+w.slack {
		if d := distance(w.chars, []rune(form), w.slack); d <= w.slack {
			return 2*d + elsewhere
		}
	}
	stem, _, _ := strings.Cut(form, ".")
	wantStem, _, _ := strings.Cut(w.baseForm, ".")
	switch {
	case stem != "" && stem == wantStem:
		return 100 + elsewhere
	case wantStem != "" && strings.Contains(form, wantStem), len(stem) > 2 && strings.Contains(w.baseForm, stem):
		return 102 + elsewhere
	}
	return 104 + elsewhere
}

// distance is the number of characters to insert, delete, replace or swap with their neighbour to make b of a, or most+1
// if that is more than most. It looks only at the band that can matter: time is in len(a) times most.
func distance(a, b []rune, most int) int {
	if len(a)-len(b) > most || len(b)-len(a) > most {
		return most + 1
	}
	far := most + 1
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		last[j], before[j], row[j] = min(j, far), far, far
	}
	for i := 1; i <= len(a); i++ {
		from, to := max(1, i-most), min(len(b), i+most)
		row[from-1] = far
		if from == 1 {
			row[0] = min(i, far)
		}
		for j := from; j <= to; j++ {
			same := 1
			if a[i-1] == b[j-1] {
				same = 0
			}
			d := last[j-1] + same
			if j < i+most {
				d = min(d, last[j]+1)
			}
			d = min(d, row[j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				d = min(d, before[j-2]+1)
			}
			row[j] = min(d, far)
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
