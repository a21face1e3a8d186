package workspace

import (
	"crypto/sha256"
	"slices"
	"strings"

	"treeline/internal/call"
)

// NewFile is a file as a call would write it, byte for byte.
type NewFile struct {
	Path    string
	Content []byte
}

// WritePlan is what a write would do.
type WritePlan struct {
	// Files are to be stored, sorted by path. A file that is written with the bytes that it has is not among them but in
	// Unchanged.
	Files     []NewFile
	Unchanged []string
	Changes   call.Changes
}

// PlanWrite plans a write_file of 1 to Limits.WriteFiles files, all or nothing. It refuses paths (as Path and
// Tree.CheckNames do), content copied from a cut (trimmed_content), the replacement of a file longer than
// Limits.ReplacementChars (whole_file_replacement), bytes that are all there already (no_change), and what does not fit
// (workspace_full). Present holds the bytes of files that are there, by path: only to quote from, it may lack any.
func PlanWrite(tree *Tree, limits Limits, files []NewFile, present map[string][]byte) (WritePlan, *call.Refusal) {
	files, r := checkFiles(tree, limits, files)
	if r != nil {
		return WritePlan{}, r
	}
	var plan WritePlan
	sizes := make(map[string]int64, len(files))
	for _, f := range files {
		old, there := tree.Get(f.Path)
		switch {
		case !there:
			plan.Changes.Created = append(plan.Changes.Created, f.Path)
		case old.Bytes == int64(len(f.Content)) && old.SHA256 == sha256.Sum256(f.Content):
			plan.Unchanged = append(plan.Unchanged, f.Path)
			continue
		case old.long(limits):
			return WritePlan{}, refuseReplacement(old, limits, present[f.Path])
		default:
			plan.Changes.Modified = append(plan.Changes.Modified, f.Path)
		}
		plan.Files = append(plan.Files, f)
		sizes[f.Path] = int64(len(f.Content))
	}
	if len(plan.Files) == 0 {
		return WritePlan{}, refuseWriteNoChange(plan.Unchanged)
	}
	if r := limits.CheckRoom(tree.Room(), tree.With(sizes)); r != nil {
		return WritePlan{}, r
	}
	plan.Changes = plan.Changes.Normal()
	return plan, nil
}

// checkFiles gives the files with their paths composed, sorted by path.
func checkFiles(tree *Tree, limits Limits, files []NewFile) ([]NewFile, *call.Refusal) {
	if len(files) == 0 || len(files) > limits.WriteFiles {
		return nil, refuseCount("files", len(files), limits.WriteFiles)
	}
	files = slices.Clone(files)
	paths := make([]string, len(files))
	for i := range files {
		path, r := Path(files[i].Path)
		if r != nil {
			return nil, r
		}
		files[i].Path, paths[i] = path, path
	}
	for _, f := range files {
		if EndsInCutNotice(string(f.Content)) {
			return nil, refuseTrimmedContent(f.Path)
		}
	}
	if r := tree.CheckNames(paths); r != nil {
		return nil, r
	}
	slices.SortFunc(files, func(a, b NewFile) int { return strings.Compare(a.Path, b.Path) })
	return files, nil
}

// long reports whether a file is too long to be replaced whole.
func (e Entry) long(limits Limits) bool { return e.Length() > int64(limits.ReplacementChars) }

// ReadSinceChange reports whether a read_file of the file, of any part of it, came after its last change.
func (e Entry) ReadSinceChange() bool { return e.LastRead > e.Revision }

// PlanDelete plans a delete_file of 1 to Limits.DeleteFiles files, all or nothing, and gives their paths, sorted. The paths
// that a failed write_file of the same turn named are in failedWrites: such a file is not deleted while it is too long
// to be replaced whole (delete_after_refused_write). Also path_not_found, path_is_folder, and path_clash for one named
// twice.
func PlanDelete(tree *Tree, limits Limits, paths []string, failedWrites map[string]bool) ([]string, *call.Refusal) {
	if len(paths) == 0 || len(paths) > limits.DeleteFiles {
		return nil, refuseCount("paths", len(paths), limits.DeleteFiles)
	}
	list := make([]string, len(paths))
	for i := range paths {
		path, r := Path(paths[i])
		if r != nil {
			return nil, r
		}
		if slices.Contains(list[:i], path) {
			return nil, refuseTwice(path)
		}
		list[i] = path
	}
	var entries []Entry
	for _, path := range list {
		e, r := tree.Find(path)
		if r != nil {
			return nil, r
		}
		entries = append(entries, e)
	}
	for _, e := range entries {
		if r := e.checkTaken(limits, failedWrites); r != nil {
			return nil, r
		}
	}
	slices.Sort(list)
	return list, nil
}

// checkTaken refuses to take a file away that a failed write of the turn named and that is still long.
func (e Entry) checkTaken(limits Limits, failedWrites map[string]bool) *call.Refusal {
	if !failedWrites[e.Path] || !e.long(limits) {
		return nil
	}
	return refuseTaken(e, limits)
}

// MovePlan is what a move would do, with both paths checked.
type MovePlan struct {
	From, To string
	Changes  call.Changes
}

// PlanMove plans a move_file: path_not_found and path_is_folder for from, no_change for the same name, path_clash for a
// target that is there or that cannot be, path_lookalike for one like another file's (not like from's own: a name may
// change by case alone), and the guard of PlanDelete.
func PlanMove(tree *Tree, limits Limits, from, to string, failedWrites map[string]bool) (MovePlan, *call.Refusal) {
	from, r := Path(from)
	if r != nil {
		return MovePlan{}, r
	}
	to, r = Path(to)
	if r != nil {
		return MovePlan{}, r
	}
	e, r := tree.Find(from)
	if r != nil {
		return MovePlan{}, r
	}
	if from == to {
		return MovePlan{}, refuseSameName(from)
	}
	if r := e.checkTaken(limits, failedWrites); r != nil {
		return MovePlan{}, r
	}
	if _, there := tree.Get(to); there {
		return MovePlan{}, refuseTargetThere(to)
	}
	if r := tree.CheckNames([]string{to}, from); r != nil {
		return MovePlan{}, r
	}
	changes := call.Changes{Created: []string{to}, Deleted: []string{from}}
	return MovePlan{From: from, To: to, Changes: changes.Normal()}, nil
}
