package store

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"

	"github.com/jackc/pgx/v5"

	"treeline/internal/store/db"
)

// Content is bytes that outlive a conversation: of an upload, passages, a skill or an artifact. It never changes; what
// replaces it is another one.
type Content struct {
	ID     string
	Bytes  int64
	SHA256 SHA256
}

// ErrTooLong says that what was to be written is longer than it may be.
var ErrTooLong = errors.New("the content is longer than it may be")

// sweepContents is how many contents that are due one write removes.
const sweepContents = 20

// WriteContent writes at most most bytes of body, a piece of PieceSize a statement, so that memory holds one of them. It
// is not in use yet: UseContent, in the transaction that names it, does that, and what is not taken into use is removed
// after a day. Errors: *BodyError, or body's own error where that is a refusal; ErrTooLong; and then nothing is left.
func WriteContent(ctx context.Context, q *db.Queries, body io.Reader, most int64) (Content, error) {
	if _, err := q.DropDueContents(ctx, sweepContents); err != nil {
		return Content{}, fmt.Errorf("remove content that is due: %w", err)
	}
	c := Content{ID: rand.Text()}
	if err := q.BeginContent(ctx, c.ID); err != nil {
		return Content{}, fmt.Errorf("begin content: %w", err)
	}
	err := c.fill(ctx, q, body, most)
	if err == nil {
		return c, nil
	}
	clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), unstageTime)
	defer cancel()
	return Content{}, errors.Join(err, q.DropContent(clean, c.ID))
}

func (c *Content) fill(ctx context.Context, q *db.Queries, body io.Reader, most int64) error {
	hash := sha256.New()
	buffer := make([]byte, PieceSize)
	for piece := int32(0); ; piece++ {
		n, err := fill(body, buffer)
		if err != nil && err != io.EOF {
			return &BodyError{Err: err}
		}
		if c.Bytes += int64(n); c.Bytes > most {
			return ErrTooLong
		}
		if n > 0 {
			hash.Write(buffer[:n])
			if err := q.AddContentPiece(ctx, db.AddContentPieceParams{ContentID: c.ID, Piece: piece, Data: buffer[:n]}); err != nil {
				return fmt.Errorf("write piece %d of content: %w", piece, err)
			}
		}
		if err == io.EOF {
			c.SHA256 = SHA256(hash.Sum(nil))
			if err := q.EndContent(ctx, db.EndContentParams{ID: c.ID, Bytes: c.Bytes, Sha256: c.SHA256[:]}); err != nil {
				return fmt.Errorf("end content: %w", err)
			}
			return nil
		}
	}
}

// DropContent removes content that is not in use, also where ctx has ended.
func DropContent(ctx context.Context, q *db.Queries, id string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), unstageTime)
	defer cancel()
	if err := q.DropContent(ctx, id); err != nil {
		return fmt.Errorf("drop content: %w", err)
	}
	return nil
}

// UseContent takes written content into use, within the transaction that names it. What the new one replaces, if
// anything, is kept for an hour for those who are reading it.
func UseContent(ctx context.Context, q *db.Queries, id, replaced string) error {
	n, err := q.UseContent(ctx, id)
	if err != nil {
		return fmt.Errorf("take content into use: %w", err)
	}
	if n == 0 {
		return fmt.Errorf("take content into use: %w", ErrAbsent)
	}
	if replaced == "" {
		return nil
	}
	if err := q.RetireContent(ctx, replaced); err != nil {
		return fmt.Errorf("retire what it replaces: %w", err)
	}
	return nil
}

// CopyFile makes content, in use at once, of a file in a conversation's workspace, within the transaction of q. The bytes
// do not leave the database.
func CopyFile(ctx context.Context, q *db.Queries, conversation string, sum SHA256, bytes int64) (Content, error) {
	c := Content{ID: rand.Text(), Bytes: bytes, SHA256: sum}
	if err := q.InsertContent(ctx, db.InsertContentParams{ID: c.ID, Bytes: bytes, Sha256: sum[:]}); err != nil {
		return c, fmt.Errorf("make content of a file: %w", err)
	}
	if err := q.CopyBlob(ctx, db.CopyBlobParams{ConversationID: conversation, Sha256: sum[:], ContentID: c.ID}); err != nil {
		return c, fmt.Errorf("copy a file's bytes: %w", err)
	}
	return c, nil
}

// ContentReader reads content a piece at a time, whenever and wherever its bytes are asked for. It is for one goroutine.
type ContentReader struct {
	ctx     context.Context
	q       *db.Queries
	content Content
	at      int64
	number  int64 // of the piece at hand; -1 is none
	piece   []byte
}

// ReadContent makes a reader of content, whose queries ctx bounds.
func ReadContent(ctx context.Context, q *db.Queries, c Content) *ContentReader {
	return &ContentReader{ctx: ctx, q: q, content: c, number: -1}
}

// Read gives the bytes from where the reader is.
func (r *ContentReader) Read(p []byte) (int, error) {
	n, err := r.read(p, r.at)
	r.at += int64(n)
	return n, err
}

// Part reads so many of the content's bytes from an offset on, out of the piece that its reader has at hand where it can.
func (r *ContentReader) Part(at, bytes int64) io.Reader {
	return io.LimitReader(&part{r, at}, bytes)
}

type part struct {
	of *ContentReader
	at int64
}

func (p *part) Read(b []byte) (int, error) {
	n, err := p.of.read(b, p.at)
	p.at += int64(n)
	return n, err
}

// read gives bytes from an offset on, at most to the end of a piece. It fails where bytes are missing before the end.
func (r *ContentReader) read(p []byte, at int64) (int, error) {
	if at >= r.content.Bytes {
		return 0, io.EOF
	}
	number := at / PieceSize
	if number != r.number {
		piece, err := r.q.ContentPiece(r.ctx, db.ContentPieceParams{ContentID: r.content.ID, Piece: int32(number)})
		if errors.Is(err, pgx.ErrNoRows) {
			err = ErrAbsent
		}
		if err != nil {
			return 0, fmt.Errorf("read piece %d of content: %w", number, err)
		}
		if want := min(PieceSize, r.content.Bytes-number*PieceSize); int64(len(piece)) != want {
			return 0, fmt.Errorf("piece %d of content has %d bytes and should have %d", number, len(piece), want)
		}
		r.number, r.piece = number, piece
	}
	return copy(p, r.piece[at%PieceSize:]), nil
}

// Seek moves the reader.
func (r *ContentReader) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += r.at
	case io.SeekEnd:
		offset += r.content.Bytes
	}
	if offset < 0 {
		return 0, errors.New("seek before the beginning of content")
	}
	r.at = offset
	return offset, nil
}

// Close frees the piece at hand.
func (r *ContentReader) Close() error {
	r.number, r.piece = -1, nil
	return nil
}

// ContentBytes reads content whole.
func ContentBytes(ctx context.Context, q *db.Queries, c Content) ([]byte, error) {
	out := make([]byte, c.Bytes)
	if _, err := io.ReadFull(ReadContent(ctx, q, c), out); err != nil && c.Bytes > 0 {
		return nil, fmt.Errorf("read content: %w", err)
	}
	return out, nil
}
