package artifact

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"treeline/internal/call"
	"treeline/internal/store"
	"treeline/internal/store/db"
)

// MaxShares is how many shares one artifact may have.
const MaxShares = 1000

// Share lets a user, or all of a department, read an artifact or also change it. One of the two is set.
type Share struct {
	User       string `json:"user"`
	Department string `json:"department"`
	// Right is RightRead or RightChange.
	Right string `json:"right"`
}

// The rights of a share. Who may change may also read.
const (
	RightRead   = "read"
	RightChange = "change"
)

// SetShares puts shares in the place of those that an artifact had; none is private again. Errors: a *call.Refusal for a
// share with nobody, with both, twice with the same, or of no right; store.ErrAbsent.
func (s *Store) SetShares(ctx context.Context, id string, shares []Share) error {
	rows := db.PutSharesParams{ArtifactID: id}
	if len(shares) > MaxShares {
		return call.Refuse(call.InvalidArguments, "An artifact has at most %d shares, and %d came. Nothing was changed.", MaxShares, len(shares))
	}
	seen := map[[2]string]bool{}
	for i, sh := range shares {
		subject, name, refusal := sh.with(i)
		if refusal != nil {
			return refusal
		}
		if seen[[2]string{subject, name}] {
			return call.Refuse(call.InvalidArguments, "Share %d is with the same %s as one before it. Nothing was changed.", i+1, subject)
		}
		seen[[2]string{subject, name}] = true
		rows.Subjects, rows.Names, rows.Rights = append(rows.Subjects, subject), append(rows.Names, name), append(rows.Rights, sh.Right)
	}
	return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error { return replaceShares(ctx, s.q.WithTx(tx), rows) })
}

func replaceShares(ctx context.Context, q *db.Queries, rows db.PutSharesParams) error {
	n, err := q.LockArtifact(ctx, rows.ArtifactID)
	if err != nil {
		return fmt.Errorf("lock the artifact: %w", err)
	}
	if n == 0 {
		return store.ErrAbsent
	}
	if err := q.DropShares(ctx, rows.ArtifactID); err != nil {
		return fmt.Errorf("drop the artifact's shares: %w", err)
	}
	if len(rows.Names) == 0 {
		return nil
	}
	if err := q.PutShares(ctx, rows); err != nil {
		return fmt.Errorf("write the artifact's shares: %w", err)
	}
	return nil
}

func (s Share) with(i int) (subject, name string, refusal *call.Refusal) {
	subject, name = "user", s.User
	if s.User == "" {
		subject, name = "department", s.Department
	}
	switch {
	case name == "":
		return "", "", call.Refuse(call.InvalidArguments, "Share %d is with nobody: give it a user or a department. Nothing was changed.", i+1)
	case s.User != "" && s.Department != "":
		return "", "", call.Refuse(call.InvalidArguments, "Share %d has a user and a department: give one of them. Nothing was changed.", i+1)
	case s.Right != RightRead && s.Right != RightChange:
		return "", "", call.Refuse(call.InvalidArguments, "The right of share %d must be read or change. Nothing was changed.", i+1)
	}
	return subject, name, checkName(subject, name)
}
