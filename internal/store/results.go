package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"treeline/internal/call"
	"treeline/internal/store/db"
)

// StoredResult is a tool result as it is kept whole: one of this system's own, whose output is {"text", "data"}, or one
// that the portal put for a tool that runs elsewhere.
type StoredResult struct {
	Ref      string          `json:"ref"`
	ToolName string          `json:"toolName"`
	IsError  bool            `json:"isError"`
	Output   json.RawMessage `json:"output"`
}

// Result reads a stored result of a conversation; false if it holds none under that ref.
func Result(ctx context.Context, q *db.Queries, conversation, ref string) (StoredResult, bool, error) {
	if strings.HasPrefix(ref, call.ReservedPrefix) {
		return ownResult(ctx, q, conversation, ref)
	}
	row, err := q.PutOfRef(ctx, db.PutOfRefParams{ConversationID: conversation, Ref: ref})
	if errors.Is(err, pgx.ErrNoRows) {
		return StoredResult{}, false, nil
	}
	if err != nil {
		return StoredResult{}, false, fmt.Errorf("read the stored result: %w", err)
	}
	return StoredResult{Ref: ref, ToolName: row.ToolName, IsError: row.IsError, Output: row.Output}, true, nil
}

func ownResult(ctx context.Context, q *db.Queries, conversation, ref string) (StoredResult, bool, error) {
	row, err := q.StoredByRef(ctx, db.StoredByRefParams{ConversationID: conversation, ResultRef: ref})
	if errors.Is(err, pgx.ErrNoRows) {
		return StoredResult{}, false, nil
	}
	if err != nil {
		return StoredResult{}, false, fmt.Errorf("read the stored result: %w", err)
	}
	out := StoredResult{Ref: ref, ToolName: row.Tool, IsError: row.Status == nil || *row.Status != string(call.OK), Output: row.Output}
	if row.Output != nil {
		return out, true, nil
	}
	var told call.Result
	if err := json.Unmarshal(row.Result, &told); err != nil {
		return out, false, fmt.Errorf("read the stored result: %w", err)
	}
	out.Output, err = json.Marshal(OwnOutput{Text: call.TextOf(told.Content), Data: told.Data})
	if err != nil {
		return out, false, fmt.Errorf("encode the stored result: %w", err)
	}
	return out, true, nil
}

// OwnOutput is the output of a result of this system's own.
type OwnOutput struct {
	Text string          `json:"text"`
	Data json.RawMessage `json:"data"`
}

// Text gives the text of a result: the text of this system's own, or an output that is a string.
func (r StoredResult) Text() (string, bool) {
	if strings.HasPrefix(r.Ref, call.ReservedPrefix) {
		var own OwnOutput
		return own.Text, json.Unmarshal(r.Output, &own) == nil
	}
	var s string
	ok := json.Unmarshal(r.Output, &s) == nil
	return s, ok
}
