// Package upload keeps the files that people upload for models to work on: their bytes and, for documents, the passages
// that were found in them. A turn opens an upload that is bound to its knowledge or that lies in one of its caller's
// collections.
package upload

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"treeline/internal/call"
	"treeline/internal/store"
	"treeline/internal/store/db"
)

const (
	// MaxBytes is the largest upload. One run takes far less: what is larger serves by its passages.
	MaxBytes = 1 << 30
	// MaxPassages is the most bytes of JSON that the passages of one upload may have.
	MaxPassages = 64 << 20
	// maxName bounds the name and the collection of an upload, in bytes.
	maxName = 1024
)

// Upload is what is known of an upload.
type Upload struct {
	ID string
	// Collection is empty where the upload lies in none.
	Collection string
	// Name is as its owner has it; how it is mounted is the mounting's.
	Name string
	store.Content
}

// Store is the uploads in Postgres. It is safe for concurrent use.
type Store struct {
	pool *pgxpool.Pool
	q    *db.Queries
}

// New makes a store over a migrated database.
func New(pool *pgxpool.Pool) *Store { return &Store{pool: pool, q: db.New(pool)} }

// Put writes an upload, in place of the one that had the id, and reports whether the id is new. An empty name is the id.
// Passages of other bytes than these are dropped. Nothing is changed before all of body is there. Errors: a *call.Refusal
// for a name that cannot be kept and (too_large) for more than MaxBytes, and a *store.BodyError.
func (s *Store) Put(ctx context.Context, id, collection, name string, body io.Reader) (Upload, bool, error) {
	if name == "" {
		name = id
	}
	u := Upload{ID: id, Collection: collection, Name: name}
	for _, f := range []struct{ what, value string }{{"name", name}, {"collection", collection}} {
		if !utf8.ValidString(f.value) || strings.ContainsRune(f.value, 0) || len(f.value) > maxName {
			return u, false, call.Refuse(call.InvalidArguments, "The %s of an upload must be UTF-8 text of at most %d bytes without U+0000.",
				f.what, maxName)
		}
	}
	content, err := store.WriteContent(ctx, s.q, body, MaxBytes)
	if errors.Is(err, store.ErrTooLong) {
		return u, false, call.Refuse(call.TooLarge, "The upload is larger than %d bytes. Nothing was stored.", MaxBytes)
	}
	if err != nil {
		return u, false, fmt.Errorf("write the upload: %w", err)
	}
	u.Content = content
	made := false
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		var err error
		made, err = replace(ctx, s.q.WithTx(tx), u)
		return err
	})
	if err != nil {
		return u, false, errors.Join(fmt.Errorf("put the upload in place: %w", err), store.DropContent(ctx, s.q, content.ID))
	}
	return u, made, nil
}

func replace(ctx context.Context, q *db.Queries, u Upload) (made bool, err error) {
	if err := q.LockName(ctx, "upload "+u.ID); err != nil {
		return false, err
	}
	old, err := q.LockUpload(ctx, u.ID)
	var hash []byte
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		made, err = true, nil
	case err == nil:
		hash, err = q.ContentHash(ctx, old)
	}
	if err != nil {
		return false, err
	}
	if err := q.PutUpload(ctx, db.PutUploadParams{ID: u.ID, Collection: u.Collection, Name: u.Name, ContentID: u.Content.ID}); err != nil {
		return false, err
	}
	if err := store.UseContent(ctx, q, u.Content.ID, old); err != nil {
		return false, err
	}
	if made || bytes.Equal(hash, u.SHA256[:]) {
		return made, nil
	}
	return false, retirePassages(ctx, q, u.ID)
}

func retirePassages(ctx context.Context, q *db.Queries, id string) error {
	old, err := q.DropPassages(ctx, id)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	return q.RetireContent(ctx, old)
}

// PutPassages writes the passages of an upload, in place of those that it had, and gives their number. Body is a JSON
// array of objects that have a text. Errors: store.ErrAbsent if there is no such upload; a *call.Refusal for another body
// and (too_large) for more than MaxPassages bytes; a *store.BodyError.
func (s *Store) PutPassages(ctx context.Context, id string, body io.Reader) (int, error) {
	if _, err := s.q.LockUpload(ctx, id); errors.Is(err, pgx.ErrNoRows) {
		return 0, store.ErrAbsent
	} else if err != nil {
		return 0, fmt.Errorf("look for the upload: %w", err)
	}
	passages := readPassages(body, MaxPassages)
	content, err := store.WriteContent(ctx, s.q, passages, 2*MaxPassages)
	var refusal *call.Refusal
	if errors.As(err, &refusal) {
		return 0, refusal
	}
	if err != nil {
		return 0, fmt.Errorf("write the passages: %w", err)
	}
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		return putPassages(ctx, s.q.WithTx(tx), id, passages.count, content)
	})
	if err != nil {
		return 0, errors.Join(fmt.Errorf("put the passages in place: %w", err), store.DropContent(ctx, s.q, content.ID))
	}
	return passages.count, nil
}

func putPassages(ctx context.Context, q *db.Queries, id string, count int, content store.Content) error {
	if _, err := q.LockUpload(ctx, id); errors.Is(err, pgx.ErrNoRows) {
		return store.ErrAbsent
	} else if err != nil {
		return err
	}
	if err := retirePassages(ctx, q, id); err != nil {
		return err
	}
	if err := q.PutPassages(ctx, db.PutPassagesParams{UploadID: id, Passages: int32(count), ContentID: content.ID}); err != nil {
		return err
	}
	return store.UseContent(ctx, q, content.ID, "")
}
