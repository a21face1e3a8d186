package store

import (
	"context"
	"fmt"

	"treeline/internal/store/db"
	"treeline/internal/workspace"
)

// Tree reads the records of a conversation's files; no content is read.
func Tree(ctx context.Context, q *db.Queries, conversation string) (*workspace.Tree, error) {
	rows, err := q.Tree(ctx, conversation)
	if err != nil {
		return nil, fmt.Errorf("read the tree: %w", err)
	}
	entries := make([]workspace.Entry, len(rows))
	for i, r := range rows {
		entries[i] = workspace.Entry{
			Path: r.Path, Revision: r.Revision, LastRead: r.LastRead, SHA256: SHA256(r.Sha256), Bytes: r.Bytes,
			Kind: workspace.Kind(r.Kind), Lines: int(r.Lines), Characters: int(r.Characters),
		}
	}
	return workspace.NewTree(entries), nil
}
