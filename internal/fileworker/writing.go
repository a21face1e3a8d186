package fileworker

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"treeline/internal/call"
	"treeline/internal/catalogue"
	"treeline/internal/ledger"
	"treeline/internal/store"
	"treeline/internal/store/db"
	"treeline/internal/strictjson"
	"treeline/internal/workspace"
)

// shownDiffLines is how much of its diff the text of an edit shows; the data have all that is kept.
const shownDiffLines = 60

// changeData is what calls that change files answer to programs.
type changeData struct {
	Revisions map[string]int64 `json:"revisions"`
	Diff      string           `json:"diff,omitempty"`
	// DiffCut says that the diff has more lines than are shown.
	DiffCut bool `json:"diffCut,omitempty"`
	// Unchanged are files of a batch that had their bytes already.
	Unchanged []string `json:"unchanged,omitempty"`
}

func (w *Worker) writeFile(ctx context.Context, c *job) (ledger.Outcome, error) {
	a := c.arguments.(catalogue.WriteFile)
	if err := c.memory.take(ctx, w.toWrite(c, a.Files)); err != nil {
		return ledger.Outcome{}, err
	}
	files := make([]workspace.NewFile, len(a.Files))
	for i, f := range a.Files {
		content, err := w.newContent(ctx, c, f)
		if err != nil {
			return ledger.Outcome{}, err
		}
		files[i] = workspace.NewFile{Path: f.Path, Content: content}
	}
	present, err := w.present(ctx, c, files)
	if err != nil {
		return ledger.Outcome{}, err
	}
	plan, refusal := workspace.PlanWrite(c.tree, w.limits, files, present)
	if refusal != nil {
		return ledger.Outcome{}, refusal
	}
	var changes []ledger.Change
	for _, f := range plan.Files {
		changes = append(changes, w.change(c, f.Path, f.Content))
	}
	data := w.changeData(c, changes, present)
	data.Unchanged = plan.Unchanged
	o := ok(wroteText(changes, plan.Unchanged, c.Seq), data)
	o.Changes = changes
	return o, nil
}

func wroteText(changes []ledger.Change, unchanged []string, revision int64) string {
	var lines []string
	for _, c := range changes {
		verb := "Created"
		if c.Before != nil {
			verb = "Replaced"
		}
		lines = append(lines, fmt.Sprintf("%s %s: %s, revision %d.", verb, c.Path, sizeOf(*c.After), revision))
	}
	for _, p := range unchanged {
		lines = append(lines, fmt.Sprintf("Left %s as it was: it had these bytes already.", p))
	}
	return strings.Join(lines, "\n")
}

func sizeOf(e workspace.Entry) string {
	if e.Kind != workspace.Text {
		return fmt.Sprintf("%d bytes", e.Bytes)
	}
	return fmt.Sprintf("%d lines, %d bytes", e.Lines, e.Bytes)
}

// newContent is the content that a write brings itself, or the text of the stored result that it names.
func (w *Worker) newContent(ctx context.Context, c *job, f catalogue.WriteTarget) ([]byte, error) {
	if f.Source == nil {
		return []byte(*f.Content), nil
	}
	r, found, err := store.Result(ctx, w.Ledger.Queries(), c.Key.Conversation, f.Source.ToolResult)
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, call.Refuse(call.SourceNotFound, "There is no stored result %q in this conversation. Nothing was written. Use the "+
			"resultRef of an earlier result, or give the text as content.", f.Source.ToolResult)
	}
	if f.Source.Pointer == nil {
		text, isText := r.Text()
		if !isText {
			return nil, call.Refuse(call.SourceNotText, "The output of the stored result %q is not one text but has fields. Nothing was written. "+
				"Name the field that is text by a pointer, for example {\"toolResult\": %q, \"pointer\": \"/body\"}, or transform the "+
				"result with run_code and toolResults.", r.Ref, r.Ref)
		}
		return []byte(text), nil
	}
	return fieldText(r, *f.Source.Pointer)
}

func fieldText(r store.StoredResult, pointer string) ([]byte, error) {
	doc, err := strictjson.Decode(r.Output, strictjson.DefaultLimits())
	if err != nil {
		return nil, fmt.Errorf("read the stored result %s: %w", r.Ref, err)
	}
	v, err := strictjson.Pointer(doc, pointer)
	var bad *strictjson.PointerError
	if errors.As(err, &bad) {
		return nil, call.Refuse(call.SourceNotFound, "The stored result %q has nothing at the pointer %q: %s. Nothing was written. Read the "+
			"result with read_result to see its fields.", r.Ref, pointer, bad)
	}
	if err != nil {
		return nil, err
	}
	text, isText := v.(string)
	if !isText {
		return nil, call.Refuse(call.SourceNotText, "The field at %q of the stored result %q is not a text. Nothing was written. Point at a "+
			"field that is a string, or transform the result with run_code and toolResults.", pointer, r.Ref)
	}
	return []byte(text), nil
}

// long reports whether a file is too long to be replaced whole.
func (w *Worker) long(e workspace.Entry) bool { return e.Length() > int64(w.limits.ReplacementChars) }

// present is the content, as it is, of those files that are there already: of one that is not going to be replaced, as much
// of its beginning as a refusal quotes.
func (w *Worker) present(ctx context.Context, c *job, files []workspace.NewFile) (map[string][]byte, error) {
	got := map[string][]byte{}
	for _, f := range files {
		e, there := c.tree.Get(f.Path)
		if !there {
			continue
		}
		fetch := w.whole
		if w.long(e) {
			fetch = w.beginning
		}
		b, err := fetch(ctx, c, e)
		if err != nil {
			return nil, err
		}
		got[f.Path] = b
	}
	return got, nil
}

// change is the change that leaves content at path.
func (w *Worker) change(c *job, path string, content []byte) ledger.Change {
	after := workspace.NewEntry(path, content, c.Seq)
	ch := ledger.Change{Path: path, After: &after, Content: content, MIMEType: workspace.MIMEType(path, content)}
	if before, there := c.tree.Get(path); there {
		ch.Before = &before
	}
	w.blobs.Keep(c.Key.Conversation, after.SHA256, content)
	return ch
}

// changeData gives the revisions and one bounded diff over all changes.
func (w *Worker) changeData(c *job, changes []ledger.Change, present map[string][]byte) changeData {
	d := changeData{Revisions: map[string]int64{}}
	var diffs []string
	left := w.limits.DiffLines
	for _, ch := range changes {
		if ch.After != nil {
			d.Revisions[ch.Path] = c.Seq
		}
		if left <= 0 {
			d.DiffCut = true
			continue
		}
		diff, cut := workspace.Diff(ch.Path, present[ch.Path], ch.Content, left)
		left -= strings.Count(diff, "\n") + 1
		d.DiffCut = d.DiffCut || cut
		diffs = append(diffs, diff)
	}
	d.Diff = strings.Join(diffs, "")
	return d
}

func (w *Worker) editFile(ctx context.Context, c *job) (ledger.Outcome, error) {
	a := c.arguments.(catalogue.EditFile)
	e, refusal := c.tree.Find(a.Path)
	if refusal != nil {
		return ledger.Outcome{}, refusal
	}
	if err := c.memory.take(ctx, toChange(e, grown(e.Bytes, a.Edits, w.limits.WorkspaceBytes))); err != nil {
		return ledger.Outcome{}, err
	}
	before, err := w.whole(ctx, c, e)
	if err != nil {
		return ledger.Outcome{}, err
	}
	after, refusal := workspace.PlanEdit(c.tree, w.limits, a.Path, before, a.Edits)
	if refusal != nil {
		return ledger.Outcome{}, refusal
	}
	changes := []ledger.Change{w.change(c, a.Path, after)}
	data := w.changeData(c, changes, map[string][]byte{a.Path: before})
	o := ok(fmt.Sprintf("Edited %s: now %s, revision %d.\n%s", a.Path, sizeOf(*changes[0].After), c.Seq, workspace.DiffShown(data.Diff, shownDiffLines)), data)
	o.Changes = changes
	return o, nil
}

func (w *Worker) deleteFile(ctx context.Context, c *job) (ledger.Outcome, error) {
	a := c.arguments.(catalogue.DeleteFile)
	failed, err := w.failedWrites(ctx, c, a.Paths)
	if err != nil {
		return ledger.Outcome{}, err
	}
	paths, refusal := workspace.PlanDelete(c.tree, w.limits, a.Paths, failed)
	if refusal != nil {
		return ledger.Outcome{}, refusal
	}
	var changes []ledger.Change
	for _, p := range paths {
		before, _ := c.tree.Get(p)
		changes = append(changes, ledger.Change{Path: p, Before: &before})
	}
	o := ok(fmt.Sprintf("Deleted %s.", strings.Join(paths, ", ")), changeData{Revisions: map[string]int64{}})
	o.Changes = changes
	return o, nil
}

func (w *Worker) moveFile(ctx context.Context, c *job) (ledger.Outcome, error) {
	a := c.arguments.(catalogue.MoveFile)
	failed, err := w.failedWrites(ctx, c, []string{a.From})
	if err != nil {
		return ledger.Outcome{}, err
	}
	plan, refusal := workspace.PlanMove(c.tree, w.limits, a.From, a.To, failed)
	if refusal != nil {
		return ledger.Outcome{}, refusal
	}
	before, _ := c.tree.Get(plan.From)
	content, err := w.beginning(ctx, c, before)
	if err != nil {
		return ledger.Outcome{}, err
	}
	after := before
	after.Path, after.Revision, after.LastRead = plan.To, c.Seq, 0
	o := ok(fmt.Sprintf("Moved %s to %s, revision %d.", plan.From, plan.To, c.Seq),
		changeData{Revisions: map[string]int64{plan.To: c.Seq}})
	o.Changes = []ledger.Change{
		{Path: plan.From, Before: &before},
		{Path: plan.To, After: &after, MIMEType: workspace.MIMEType(plan.To, content)},
	}
	return o, nil
}

// failedWrites are those of the paths that a failed write_file of this turn named. People are not guarded.
func (w *Worker) failedWrites(ctx context.Context, c *job, paths []string) (map[string]bool, error) {
	if c.Turn.Portal {
		return nil, nil
	}
	rows, err := w.Ledger.Queries().FailedWrites(ctx, db.FailedWritesParams{TurnID: c.Key.Turn, Paths: paths})
	if err != nil {
		return nil, fmt.Errorf("look for failed writes of the turn: %w", err)
	}
	out := map[string]bool{}
	for _, p := range rows {
		out[p] = true
	}
	return out, nil
}
