package store

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/jackc/pgx/v5"

	"treeline/internal/store/db"
)

// PieceSize is the most bytes that one row of blobs holds; larger content takes several rows.
const PieceSize = 1 << 20

// SHA256 names content.
type SHA256 = [32]byte

// Pieces cuts content into pieces of at most PieceSize bytes; empty content is one empty piece.
func Pieces(content []byte) [][]byte {
	out := [][]byte{}
	for len(content) > PieceSize {
		out = append(out, content[:PieceSize])
		content = content[PieceSize:]
	}
	return append(out, content)
}

// Blobs reads file contents through a bounded cache in memory. Content is named by its hash, so what is cached never
// goes stale; the conversation is part of the key, so that no conversation is answered from another's bytes.
type Blobs struct {
	q   *db.Queries
	max int64

	mu    sync.Mutex
	size  int64
	order *list.List // front: used last
	held  map[blobKey]*list.Element
}

type blobKey struct {
	conversation string
	sum          SHA256
}

type blobEntry struct {
	key     blobKey
	content []byte
}

// NewBlobs makes a reader whose cache holds at most max bytes of content.
func NewBlobs(q *db.Queries, max int64) *Blobs {
	return &Blobs{q: q, max: max, order: list.New(), held: map[blobKey]*list.Element{}}
}

// Get gives the content with the hash sum. The slice is shared: it must not be changed.
func (b *Blobs) Get(ctx context.Context, conversation string, sum SHA256) ([]byte, error) {
	got, err := b.GetAll(ctx, conversation, []SHA256{sum})
	if err != nil {
		return nil, err
	}
	return got[sum], nil
}

// GetAll gives several contents by hash, those that are not cached in one query. A hash that the conversation does not
// hold is an error.
func (b *Blobs) GetAll(ctx context.Context, conversation string, sums []SHA256) (map[SHA256][]byte, error) {
	out := make(map[SHA256][]byte, len(sums))
	var missing [][]byte
	for i := range sums {
		if _, done := out[sums[i]]; done {
			continue
		}
		if c, ok := b.cached(blobKey{conversation, sums[i]}); ok {
			out[sums[i]] = c
			continue
		}
		out[sums[i]] = nil
		missing = append(missing, sums[i][:])
	}
	if len(missing) == 0 {
		return out, nil
	}
	rows, err := b.q.PiecesOf(ctx, db.PiecesOfParams{ConversationID: conversation, Sha256s: missing})
	if err != nil {
		return nil, fmt.Errorf("read file bytes: %w", err)
	}
	join(rows, out)
	for _, m := range missing {
		sum := SHA256(m)
		if out[sum] == nil {
			return nil, fmt.Errorf("read file bytes: the content %x is not there", sum[:6])
		}
		b.Keep(conversation, sum, out[sum])
	}
	return out, nil
}

// join puts the pieces, which come in order, together by hash. Content of one piece is not copied; for other content there is
// memory for it once, and its pieces are let go as they are copied.
func join(rows []db.PiecesOfRow, into map[SHA256][]byte) {
	sizes := map[SHA256]int{}
	for _, r := range rows {
		sizes[SHA256(r.Sha256)] += len(r.Data)
	}
	for i, r := range rows {
		sum := SHA256(r.Sha256)
		switch {
		case r.Piece > 0:
			into[sum] = append(into[sum], r.Data...)
		case sizes[sum] == len(r.Data):
			into[sum] = r.Data
		default:
			into[sum] = append(make([]byte, 0, sizes[sum]), r.Data...)
		}
		rows[i].Data = nil
	}
}

func (b *Blobs) cached(k blobKey) ([]byte, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e, ok := b.held[k]
	if !ok {
		return nil, false
	}
	b.order.MoveToFront(e)
	return e.Value.(*blobEntry).content, true
}

// Keep remembers content that the caller has just written or read.
func (b *Blobs) Keep(conversation string, sum SHA256, content []byte) {
	if int64(len(content)) > b.max/4 {
		return
	}
	k := blobKey{conversation, sum}
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, ok := b.held[k]; ok {
		return
	}
	b.held[k] = b.order.PushFront(&blobEntry{k, content})
	b.size += int64(len(content))
	for b.size > b.max {
		last := b.order.Back()
		e := last.Value.(*blobEntry)
		b.order.Remove(last)
		delete(b.held, e.key)
		b.size -= int64(len(e.content))
	}
}

// StagedBytes reads staged bytes whole. An id that is not there gives no bytes.
func StagedBytes(ctx context.Context, q *db.Queries, id string) ([]byte, error) {
	var out []byte
	for piece := int32(0); ; piece++ {
		b, err := q.StagedPiece(ctx, db.StagedPieceParams{ID: id, Piece: piece})
		if errors.Is(err, pgx.ErrNoRows) {
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read staged bytes: %w", err)
		}
		out = append(out, b...)
	}
}
