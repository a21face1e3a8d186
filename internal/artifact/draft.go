package artifact

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"treeline/internal/call"
	"treeline/internal/store"
	"treeline/internal/store/db"
	"treeline/internal/turn"
)

// Draft is a version that a call is about to write, in the transaction that finishes the call.
type Draft struct {
	ID string
	// Version is the number that it will have: 1 for a new artifact.
	Version     int
	Kind        Kind
	Title, Name string
	// Caller makes it; the caller's department is billed.
	Caller       turn.Caller
	Conversation string
	Seq          int64
	// CallID, CallTool and Code say which call last made the file.
	CallID, CallTool string
	Code             []byte
	// File is a file of the conversation's workspace, or Content the bytes themselves.
	File    *WorkspaceFile
	Content []byte
	Sources []WorkspaceFile
	// Rebase is told that another version came first: Version is the new number, and now is what the draft comes after.
	// It makes what is told of the draft, and where it must the draft, fit.
	Rebase func(ctx context.Context, q *db.Queries, now Artifact) error
}

// WorkspaceFile names a file of a workspace by its content.
type WorkspaceFile struct {
	Path   string
	SHA256 store.SHA256
	Bytes  int64
}

// NewID makes the id of an artifact that a call saves.
func NewID() string { return "ar-" + strings.ToLower(rand.Text()) }

// errMoved says that another version came first. It has the code of a serialization failure, at which the ledger begins
// the transaction again, composing the call's result anew.
type errMoved struct{}

func (errMoved) Error() string { return "another version of the artifact came first" }

func (errMoved) Unwrap() error {
	return &pgconn.PgError{Code: "40001", Message: "another version came first"}
}

// Write writes the version in the transaction of q. Its number is taken only if it is still the next.
func (d *Draft) Write(ctx context.Context, q *db.Queries) error {
	if d.Version == 1 {
		if err := q.InsertArtifact(ctx, db.InsertArtifactParams{ID: d.ID, Owner: d.Caller.User}); err != nil {
			return fmt.Errorf("make the artifact: %w", err)
		}
	} else if err := d.raise(ctx, q); err != nil {
		return err
	}
	content, err := d.content(ctx, q)
	if err != nil {
		return err
	}
	err = q.InsertArtifactVersion(ctx, db.InsertArtifactVersionParams{
		ArtifactID: d.ID, Version: int32(d.Version), Kind: string(d.Kind), Title: d.Title, Name: d.Name, ContentID: content.ID,
		MadeBy: d.Caller.User, Department: d.Caller.Department, Bytes: content.Bytes, ConversationID: &d.Conversation, Seq: &d.Seq,
		CallID: d.CallID, CallTool: d.CallTool, Code: d.Code,
	})
	if err != nil {
		return fmt.Errorf("write the artifact's version: %w", err)
	}
	for _, f := range d.Sources {
		source, err := store.CopyFile(ctx, q, d.Conversation, f.SHA256, f.Bytes)
		if err != nil {
			return err
		}
		err = q.InsertArtifactSource(ctx, db.InsertArtifactSourceParams{ArtifactID: d.ID, Version: int32(d.Version), Path: f.Path, ContentID: source.ID})
		if err != nil {
			return fmt.Errorf("write what the artifact was made from: %w", err)
		}
	}
	return nil
}

// raise takes the next number, under the artifact's lock; the caller may have lost the right to it since.
func (d *Draft) raise(ctx context.Context, q *db.Queries) error {
	n, err := q.RaiseArtifact(ctx, db.RaiseArtifactParams{ID: d.ID, Expected: int32(d.Version - 1)})
	if err != nil {
		return fmt.Errorf("raise the artifact's version: %w", err)
	}
	if n == 1 {
		return nil
	}
	now, err := OpenToChange(ctx, q, d.Caller, d.ID)
	if err != nil {
		return err
	}
	d.Version = now.Newest + 1
	if d.Rebase != nil {
		if err := d.Rebase(ctx, q, now); err != nil {
			return err
		}
	}
	return errMoved{}
}

func (d *Draft) content(ctx context.Context, q *db.Queries) (store.Content, error) {
	if d.File != nil {
		return store.CopyFile(ctx, q, d.Conversation, d.File.SHA256, d.File.Bytes)
	}
	c := store.Content{ID: rand.Text(), Bytes: int64(len(d.Content)), SHA256: sha256.Sum256(d.Content)}
	if err := q.InsertContent(ctx, db.InsertContentParams{ID: c.ID, Bytes: c.Bytes, Sha256: c.SHA256[:]}); err != nil {
		return c, fmt.Errorf("make the artifact's content: %w", err)
	}
	for i, piece := range store.Pieces(d.Content) {
		if len(piece) == 0 {
			break
		}
		if err := q.AddContentPiece(ctx, db.AddContentPieceParams{ContentID: c.ID, Piece: int32(i), Data: piece}); err != nil {
			return c, fmt.Errorf("write piece %d of the artifact: %w", i, err)
		}
	}
	return c, nil
}

// Maker finds the call that last gave a file of a workspace its present bytes, and its code if it ran some.
func Maker(ctx context.Context, q *db.Queries, conversation string, file store.SHA256, revision int64) (Call, error) {
	r, err := q.MadeBy(ctx, db.MadeByParams{ConversationID: conversation, Sha256: file[:]})
	if err == nil {
		return Call{ID: r.CallID, Tool: r.Tool, Arguments: r.Arguments}, nil
	}
	if !errors.Is(err, pgx.ErrNoRows) {
		return Call{}, fmt.Errorf("look for the call that made the file: %w", err)
	}
	// Its history is pruned: what is left is who changed it last.
	last, err := q.CallBySeq(ctx, db.CallBySeqParams{ConversationID: conversation, Seq: revision})
	if errors.Is(err, pgx.ErrNoRows) {
		return Call{}, nil
	}
	if err != nil {
		return Call{}, fmt.Errorf("look for the call that changed the file: %w", err)
	}
	return Call{ID: last.CallID, Tool: last.Tool, Arguments: last.Arguments}, nil
}

// Call is a call that made a file.
type Call struct {
	ID, Tool  string
	Arguments []byte
}

// RefuseNotText says that an artifact has no text to edit.
func RefuseNotText(a Artifact) *call.Refusal {
	return call.Refuse(call.ArtifactNotText, "The artifact %q is a file: there is no text to match. Nothing was saved. Mount it with run_code "+
		"(artifacts: [{\"id\": %q}] puts it at inputs/artifacts/%s), write the changed file below workspace/, and save that with "+
		"save_artifact and this artifactId.", a.ID, a.ID, a.Path())
}
