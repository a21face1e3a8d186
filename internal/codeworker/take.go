package codeworker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"treeline/internal/ledger"
	"treeline/internal/sandbox"
	"treeline/internal/workspace"
)

// left is what a run left: the changes to the workspace with their bytes, and what is not kept.
type left struct {
	changes     []ledger.Change // sorted by path
	ignored     []workspace.Ignored
	ignoredMore int
	outside     []string
	outsideMore int
}

// take reads the tree whole, judges names and limits, and reads what changed. Errors: *sandbox.TreeTooLarge and
// *call.Refusal (workspace_full) for a tree past the limits; any other says that the tree cannot be trusted.
func (r *run) take(ctx context.Context) (left, error) {
	tree, err := r.session.Take(ctx)
	if err != nil {
		return left{}, err
	}
	if err := tree.Check(); err != nil {
		return left{}, err
	}
	raw := make([]string, len(tree.Files))
	for i, f := range tree.Files {
		raw[i] = f.Path
	}
	kept, ignored := workspace.FoundPaths(raw)
	out := left{ignored: ignored, ignoredMore: tree.IgnoredMore, outsideMore: tree.OutsideMore}
	for _, i := range tree.Ignored {
		out.ignored = append(out.ignored, workspace.Ignored{Path: workspace.Spell(i.Path), Reason: i.Reason})
	}
	out.bound(tree.Outside)
	if err := r.checkRoom(tree, kept); err != nil {
		return left{}, err
	}
	out.changes, err = r.changes(ctx, tree, kept)
	return out, err
}

const (
	// listed bounds how many paths a result names as ignored, and as left outside; listedBytes how long they are together.
	listed      = 1000
	listedBytes = 128 << 10
)

// bound sorts what is not kept and keeps as much of it as a result names.
func (l *left) bound(outside []string) {
	slices.SortFunc(l.ignored, func(a, b workspace.Ignored) int { return strings.Compare(a.Path, b.Path) })
	n := fitting(len(l.ignored), func(i int) int { return len(l.ignored[i].Path) + len(l.ignored[i].Reason) })
	l.ignored, l.ignoredMore = l.ignored[:n], l.ignoredMore+len(l.ignored)-n
	for _, path := range outside {
		l.outside = append(l.outside, workspace.Spell(path))
	}
	n = fitting(len(l.outside), func(i int) int { return len(l.outside[i]) })
	l.outside, l.outsideMore = l.outside[:n], l.outsideMore+len(l.outside)-n
}

// fitting gives how many of the first entries, of the given sizes, a result names.
func fitting(entries int, size func(i int) int) int {
	total := 0
	for i := range min(entries, listed) {
		if total += size(i); total > listedBytes {
			return i
		}
	}
	return min(entries, listed)
}

// checkRoom judges the limits before a byte of a change is read.
func (r *run) checkRoom(tree sandbox.Tree, kept map[string]string) error {
	then := workspace.Room{Files: len(kept)}
	for _, name := range kept {
		f, _ := tree.Find(name)
		then.Bytes += f.Size
	}
	if refusal := r.limits.CheckRoom(r.before.Room(), then); refusal != nil {
		return refusal
	}
	return nil
}

// changes compares the tree by content with the one that was mounted.
func (r *run) changes(ctx context.Context, tree sandbox.Tree, kept map[string]string) ([]ledger.Change, error) {
	var changes []ledger.Change
	for _, path := range slices.Sorted(maps.Keys(kept)) {
		f, _ := tree.Find(kept[path])
		before, there := r.before.Get(path)
		if there && before.SHA256 == f.SHA256 {
			continue
		}
		content, err := r.read(ctx, f)
		if err != nil {
			return nil, err
		}
		after := workspace.NewEntry(path, content, r.work.Seq)
		if after.SHA256 != f.SHA256 {
			return nil, &sandbox.TreeUnreadable{Path: f.Path, Err: errors.New("its bytes are not those that were listed")}
		}
		c := ledger.Change{Path: path, After: &after, Content: content, MIMEType: workspace.MIMEType(path, content)}
		if there {
			c.Before = &before
		}
		changes = append(changes, c)
	}
	for _, e := range r.before.All() {
		if _, still := kept[e.Path]; !still {
			changes = append(changes, ledger.Change{Path: e.Path, Before: &e})
		}
	}
	slices.SortFunc(changes, func(a, b ledger.Change) int { return strings.Compare(a.Path, b.Path) })
	return changes, nil
}

func (r *run) read(ctx context.Context, f sandbox.File) ([]byte, error) {
	in, err := r.session.Open(ctx, f.Path)
	if err != nil {
		return nil, fmt.Errorf("open what the run left: %w", err)
	}
	content := make([]byte, f.Size)
	_, err = io.ReadFull(in, content)
	if err == nil {
		var more int64
		if more, err = io.Copy(io.Discard, io.LimitReader(in, 1)); more > 0 { // to its end, where the reader checks the bytes
			err = &sandbox.TreeUnreadable{Path: f.Path, Err: errors.New("it has grown since it was listed")}
		}
	}
	if err := errors.Join(err, in.Close()); err != nil {
		return nil, fmt.Errorf("read what the run left: %w", err)
	}
	return content, nil
}
