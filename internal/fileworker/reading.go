package fileworker

import (
	"context"

	"treeline/internal/call"
	"treeline/internal/catalogue"
	"treeline/internal/ledger"
	"treeline/internal/workspace"
)

func (w *Worker) listFiles(_ context.Context, c *job) (ledger.Outcome, error) {
	a := c.arguments.(catalogue.ListFiles)
	text, data, refusal := c.tree.List(workspace.ListRequest{Path: a.Path, Glob: a.Glob}, w.limits)
	if refusal != nil {
		return ledger.Outcome{}, refusal
	}
	return ok(text, data), nil
}

func (w *Worker) readFile(ctx context.Context, c *job) (ledger.Outcome, error) {
	a := c.arguments.(catalogue.ReadFile)
	requests := make([]workspace.ReadRequest, len(a.Files))
	var want []workspace.Entry
	for i, f := range a.Files {
		requests[i] = workspace.ReadRequest{Path: f.Path,
			Span: workspace.Span{StartLine: f.StartLine, EndLine: f.EndLine, StartColumn: f.StartColumn}}
		if e, there := c.tree.Get(f.Path); there {
			want = append(want, e)
		}
	}
	content, err := w.content(ctx, c, want)
	if err != nil {
		return ledger.Outcome{}, err
	}
	blocks, data, err := c.tree.Read(requests, w.limits, content, w.pictures(c.Turn.Vision))
	if err != nil {
		return ledger.Outcome{}, err
	}
	o := ledger.Outcome{Status: call.OK, Content: blocks, Data: data, Exact: true}
	for _, f := range data.Files {
		// What the budget did not reach was not read.
		if f.ReadBinary != nil || (f.ReadLines != nil && (f.EndLine >= f.StartLine || f.TotalLines == 0)) {
			o.Reads = append(o.Reads, f.Path)
		}
	}
	return o, nil
}

func (w *Worker) searchFiles(ctx context.Context, c *job) (ledger.Outcome, error) {
	a := c.arguments.(catalogue.SearchFiles)
	selected, refusal := c.tree.Selected(a.Path, a.Glob)
	if refusal != nil {
		return ledger.Outcome{}, refusal
	}
	var want []workspace.Entry
	for _, e := range selected {
		if e.Kind == workspace.Text {
			want = append(want, e)
		}
	}
	content, err := w.content(ctx, c, want)
	if err != nil {
		return ledger.Outcome{}, err
	}
	text, data, err := c.tree.Search(workspace.SearchRequest{Queries: a.Queries, Path: a.Path, Glob: a.Glob,
		ContextLines: a.ContextLines, IgnoreCase: a.IgnoreCase}, w.limits, content)
	if err != nil {
		return ledger.Outcome{}, err
	}
	o := ok(text, data)
	o.Exact = true
	return o, nil
}
