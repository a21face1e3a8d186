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
	return TreeOf(rows), nil
}

// TreeOf makes a tree of its rows.
func TreeOf(rows []db.TreeRow) *workspace.Tree {
	entries := make([]workspace.Entry, len(rows))
	for i, r := range rows {
		entries[i] = workspace.Entry{
			Path: r.Path, Revision: r.Revision, LastRead: r.LastRead, SHA256: SHA256(r.Sha256), Bytes: r.Bytes,
			Kind: workspace.Kind(r.Kind), Lines: int(r.Lines), Characters: int(r.Characters),
		}
	}
	return workspace.NewTree(entries)
}
