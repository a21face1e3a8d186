package ledger

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"treeline/internal/call"
	"treeline/internal/store"
	"treeline/internal/store/db"
	"treeline/internal/workspace"
)

// Outcome is what doing a call came to, before it is a result: the model's text is whole here, and the changes carry
// their bytes.
type Outcome struct {
	Status  call.Status
	Code    call.Code
	Content []call.Content
	// Data is told with the result; Output is what the stored result keeps in its place, where that is more.
	Data   any
	Output any
	// Exact keeps the text of the content from being shortened to a preview.
	Exact bool
	// Changes take effect with the result, and only if Status is ok, or where the code's changes are kept.
	Changes []Change
	// Reads are the paths that a read_file has shown.
	Reads []string
	// Effect is done in the finishing transaction, after the fence. A *call.Refusal from it undoes everything and
	// becomes the result.
	Effect func(ctx context.Context, q *db.Queries) error
}

// Change is one path's before and after. Before is nil for a created file, After for a deleted one.
type Change struct {
	Path          string
	Before, After *workspace.Entry
	// Content is the new bytes; Staged, where it is set, names bytes that are in the database already.
	Content  []byte
	Staged   string
	MIMEType string
}

// Op names the change as the history does.
func (c Change) Op() string {
	switch {
	case c.Before == nil:
		return "created"
	case c.After == nil:
		return "deleted"
	}
	return "modified"
}

// RefusedOutcome makes the outcome of a refusal.
func RefusedOutcome(r *call.Refusal) Outcome {
	return Outcome{Status: call.Refused, Code: r.Code, Content: []call.Content{call.Text(r.Text)}}
}

// FailedOutcome makes the outcome of work that went wrong and changed nothing.
func FailedOutcome(code call.Code, text string) Outcome {
	return Outcome{Status: call.Failed, Code: code, Content: []call.Content{call.Text(text)}}
}

type resultFacts struct {
	key               call.Key
	tool              string
	seq               int64
	attempt           int
	started, finished time.Time
	arguments         []byte
}

type storedResult struct {
	told   []byte
	output []byte // nil where the told result says it all
}

// compose makes the result that is told, with the text cut to the preview, and the bytes that are stored.
func (l *Ledger) compose(f resultFacts, o Outcome) (call.Result, storedResult, error) {
	data, err := marshalData(o.Data)
	if err != nil {
		return call.Result{}, storedResult{}, err
	}
	res := call.Result{
		CallID: f.key.Call, TurnID: f.key.Turn, ConversationID: f.key.Conversation, Tool: f.tool, Seq: f.seq,
		Status: o.Status, Code: o.Code, IsError: o.Status != call.OK, Data: data, Changes: changesOf(o.Changes),
		ResultRef: ResultRef(f.key), Attempt: f.attempt, StartedAt: f.started, FinishedAt: f.finished,
		ReplayArguments: l.cfg.Limits.ReplayArguments(f.tool, f.arguments, o.Status),
	}
	shortened := false
	res.Content, shortened = l.preview(o, res.ResultRef)
	var stored storedResult
	if shortened || o.Output != nil {
		if stored.output, err = storedOutput(o, data); err != nil {
			return res, stored, err
		}
	}
	if stored.told, err = json.Marshal(res); err != nil {
		return res, stored, fmt.Errorf("encode the result: %w", err)
	}
	return res, stored, nil
}

func marshalData(data any) (json.RawMessage, error) {
	if data == nil {
		return json.RawMessage("{}"), nil
	}
	b, err := json.Marshal(data)
	if err != nil {
		return nil, fmt.Errorf("encode the result's data: %w", err)
	}
	return b, nil
}

func storedOutput(o Outcome, data json.RawMessage) ([]byte, error) {
	if o.Output != nil {
		whole, err := marshalData(o.Output)
		if err != nil {
			return nil, err
		}
		data = whole
	}
	b, err := json.Marshal(store.OwnOutput{Text: call.TextOf(o.Content), Data: data})
	if err != nil {
		return nil, fmt.Errorf("encode the stored result: %w", err)
	}
	return b, nil
}

// preview cuts text to the preview, block by block, within one budget. Images are never touched.
func (l *Ledger) preview(o Outcome, ref string) (content []call.Content, shortened bool) {
	content = slices.Clone(o.Content)
	if content == nil {
		content = []call.Content{}
	}
	if o.Exact {
		return content, false
	}
	for i, c := range content {
		if c.Type != "text" {
			continue
		}
		var cut bool
		content[i].Text, cut = l.cfg.Limits.Preview(c.Text, ref)
		shortened = shortened || cut
	}
	return content, shortened
}

func changesOf(list []Change) call.Changes {
	var c call.Changes
	for _, ch := range list {
		switch ch.Op() {
		case "created":
			c.Created = append(c.Created, ch.Path)
		case "deleted":
			c.Deleted = append(c.Deleted, ch.Path)
		default:
			c.Modified = append(c.Modified, ch.Path)
		}
	}
	for _, paths := range [][]string{c.Created, c.Modified, c.Deleted} {
		slices.Sort(paths)
	}
	return c.Normal()
}
