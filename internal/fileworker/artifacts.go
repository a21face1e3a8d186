package fileworker

import (
	"context"
	"fmt"
	"path"
	"strings"

	"treeline/internal/artifact"
	"treeline/internal/call"
	"treeline/internal/catalogue"
	"treeline/internal/ledger"
	"treeline/internal/store"
	"treeline/internal/store/db"
	"treeline/internal/workspace"
)

// savedData is what calls that save artifacts answer to programs.
type savedData struct {
	ArtifactID string        `json:"artifactId"`
	Version    int           `json:"version"`
	Kind       artifact.Kind `json:"kind"`
	Title      string        `json:"title"`
	Bytes      int64         `json:"bytes"`
	Diff       string        `json:"diff,omitempty"`
	DiffCut    bool          `json:"diffCut,omitempty"`
}

// saveArtifact stores a file as a new artifact of the turn's caller, or as a new version of one that he may change.
func (w *Worker) saveArtifact(ctx context.Context, c *job) (ledger.Outcome, error) {
	a := c.arguments.(catalogue.SaveArtifact)
	if refusal := artifact.CheckTitle(a.Title); refusal != nil {
		return ledger.Outcome{}, refusal
	}
	e, refusal := c.tree.Find(a.Path)
	if refusal != nil {
		return ledger.Outcome{}, refusal
	}
	d, err := w.draft(ctx, c, a, e)
	if err != nil {
		return ledger.Outcome{}, err
	}
	return saved(d, func() (string, *savedData) {
		data := &savedData{ArtifactID: d.ID, Version: d.Version, Kind: d.Kind, Title: d.Title, Bytes: e.Bytes}
		return fmt.Sprintf("Saved %s as version %d of the artifact %s (%s, %q, %d bytes).", a.Path, d.Version, d.ID, d.Kind, d.Title, e.Bytes), data
	}), nil
}

func (w *Worker) draft(ctx context.Context, c *job, a catalogue.SaveArtifact, e workspace.Entry) (*artifact.Draft, error) {
	q := w.Ledger.Queries()
	d := &artifact.Draft{ID: a.ArtifactID, Version: 1, Kind: artifact.KindOf(a.Path, e.Kind == workspace.Text), Title: a.Title, Name: path.Base(a.Path),
		Caller: c.Turn.Caller, Conversation: c.Key.Conversation, Seq: c.Seq, File: &artifact.WorkspaceFile{Path: a.Path, SHA256: e.SHA256, Bytes: e.Bytes}}
	if a.ArtifactID == "" {
		d.ID = artifact.NewID()
	} else {
		now, err := artifact.OpenToChange(ctx, q, c.Turn.Caller, a.ArtifactID)
		if err != nil {
			return nil, err
		}
		d.Version = now.Newest + 1
		if e.Kind == workspace.Text || now.Kind == artifact.File {
			d.Kind = now.Kind // it stays what it is, as far as the bytes allow
		}
		if d.Title == "" {
			d.Title = now.Title
		}
	}
	if d.Title == "" {
		d.Title = d.Name
	}
	if refusal := sources(c, a, d); refusal != nil {
		return nil, refusal
	}
	made, err := artifact.Maker(ctx, q, c.Key.Conversation, e.SHA256, e.Revision)
	if err != nil {
		return nil, err
	}
	d.CallID, d.CallTool = made.ID, made.Tool
	if made.Tool == catalogue.RunCodeTool {
		args, err := catalogue.Decode(made.Tool, made.Arguments)
		if err != nil {
			return nil, err
		}
		d.Code = []byte(args.(catalogue.RunCode).Code)
	}
	return d, nil
}

// sources names the files that an artifact was made from, each once.
func sources(c *job, a catalogue.SaveArtifact, d *artifact.Draft) *call.Refusal {
	seen := map[string]bool{}
	for _, p := range a.Sources {
		e, refusal := c.tree.Find(p)
		if refusal != nil {
			return refusal
		}
		if !seen[p] {
			seen[p] = true
			d.Sources = append(d.Sources, artifact.WorkspaceFile{Path: p, SHA256: e.SHA256, Bytes: e.Bytes})
		}
	}
	return nil
}

// saved is the outcome that writes a draft; tell says what it came to. Should another version come first, the draft gets
// another number, and the outcome is told anew.
func saved(d *artifact.Draft, tell func() (string, *savedData)) ledger.Outcome {
	text, data := tell()
	o := ok(text, data)
	rebase := d.Rebase
	d.Rebase = func(ctx context.Context, q *db.Queries, now artifact.Artifact) error {
		if rebase != nil {
			if err := rebase(ctx, q, now); err != nil {
				return err
			}
		}
		text, again := tell()
		o.Content[0], *data = call.Text(text), *again
		return nil
	}
	o.Effect = d.Write
	return o
}

// editArtifact changes one place in the text of an artifact that the caller may change, as a new version.
func (w *Worker) editArtifact(ctx context.Context, c *job) (ledger.Outcome, error) {
	a := c.arguments.(catalogue.EditArtifact)
	q := w.Ledger.Queries()
	now, err := artifact.OpenToChange(ctx, q, c.Turn.Caller, a.ArtifactID)
	if err != nil {
		return ledger.Outcome{}, err
	}
	edit := workspace.Edit{Find: &a.Find, Replace: &a.Replace}
	// Another version may come first, which is then edited again: it is taken to be about as large.
	if err := c.memory.take(ctx, toChange(workspace.Entry{Bytes: now.Bytes}, grown(now.Bytes, []workspace.Edit{edit}, artifact.MaxText))); err != nil {
		return ledger.Outcome{}, err
	}
	d := &artifact.Draft{Caller: c.Turn.Caller, Conversation: c.Key.Conversation, Seq: c.Seq, CallID: c.Key.Call, CallTool: c.Tool}
	var diff string
	var cut bool
	plan := func(ctx context.Context, q *db.Queries, now artifact.Artifact) error {
		if !now.Kind.Textual() || now.Bytes > artifact.MaxText {
			return artifact.RefuseNotText(now)
		}
		before, err := store.ContentBytes(ctx, q, now.Content)
		if err != nil {
			return err
		}
		after, refusal := workspace.PlanEdits(before, []workspace.Edit{edit})
		if refusal != nil {
			return inOneEdit(refusal)
		}
		diff, cut = workspace.Diff(now.Path(), before, after, w.limits.DiffLines)
		d.ID, d.Version, d.Kind, d.Title, d.Name, d.Content = now.ID, now.Newest+1, now.Kind, now.Title, now.Name, after
		return nil
	}
	if err := plan(ctx, q, now); err != nil {
		return ledger.Outcome{}, err
	}
	d.Rebase = plan
	return saved(d, func() (string, *savedData) {
		data := &savedData{ArtifactID: d.ID, Version: d.Version, Kind: d.Kind, Title: d.Title, Bytes: int64(len(d.Content)), Diff: diff, DiffCut: cut}
		return fmt.Sprintf("Edited the artifact %s: now version %d, %d bytes.\n%s", d.ID, d.Version, data.Bytes, diff), data
	}), nil
}

// inOneEdit leaves out of a refusal of edit_file the way that edit_artifact does not have.
func inOneEdit(r *call.Refusal) *call.Refusal {
	if r.Code == call.TextNotUnique {
		r.Text = strings.Replace(r.Text, ", or give all: true to replace every one", "", 1)
	}
	return r
}
