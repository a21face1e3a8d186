package store

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/jackc/pgx/v5"

	"treeline/internal/store/db"
)

// ErrAbsent says that what was asked for is not in the database.
var ErrAbsent = errors.New("it is not there")

// Portal is what people see of conversations: it only reads, but for the bytes of an upload, which it stages.
type Portal struct{ q *db.Queries }

// NewPortal makes a portal's view over q.
func NewPortal(q *db.Queries) *Portal { return &Portal{q: q} }

// Conversation is what is known of a conversation. Open counts its unfinished calls.
type Conversation struct {
	ID        string
	Files     int
	Bytes     int64
	LastSeq   int64
	Open      int
	CreatedAt time.Time
	DeletedAt *time.Time
}

// Conversation reads a conversation, a deleted one too; ErrAbsent if there never was one.
func (p *Portal) Conversation(ctx context.Context, id string) (Conversation, error) {
	row, err := p.q.Conversation(ctx, id)
	if err != nil {
		return Conversation{}, absentOr("read the conversation", err)
	}
	return Conversation{ID: row.ID, Files: int(row.Files), Bytes: row.Bytes, LastSeq: row.LastSeq, Open: int(row.Open),
		CreatedAt: row.CreatedAt.UTC(), DeletedAt: row.DeletedAt}, nil
}

func absentOr(what string, err error) error {
	if errors.Is(err, pgx.ErrNoRows) {
		return fmt.Errorf("%s: %w", what, ErrAbsent)
	}
	return fmt.Errorf("%s: %w", what, err)
}

// File is the record of one file in a workspace. Its bytes are read by Piece.
type File struct {
	Path      string
	Bytes     int64
	Revision  int64
	SHA256    SHA256
	Text      bool
	MIMEType  string
	UpdatedAt time.Time
}

// Files lists a conversation's files by path.
func (p *Portal) Files(ctx context.Context, conversation string) ([]File, error) {
	rows, err := p.q.Tree(ctx, conversation)
	if err != nil {
		return nil, fmt.Errorf("list the files: %w", err)
	}
	files := make([]File, len(rows))
	for i, r := range rows {
		files[i] = File{Path: r.Path, Bytes: r.Bytes, Revision: r.Revision, SHA256: SHA256(r.Sha256), Text: r.Kind == "text",
			MIMEType: r.MimeType, UpdatedAt: r.UpdatedAt.UTC()}
	}
	return files, nil
}

// File reads the record of one file; ErrAbsent if there is none at path.
func (p *Portal) File(ctx context.Context, conversation, path string) (File, error) {
	rows, err := p.q.FilesAt(ctx, db.FilesAtParams{ConversationID: conversation, Paths: []string{path}})
	if err != nil {
		return File{}, fmt.Errorf("read the file's record: %w", err)
	}
	if len(rows) == 0 {
		return File{}, fmt.Errorf("read the file's record: %w", ErrAbsent)
	}
	r := rows[0]
	return File{Path: r.Path, Bytes: r.Bytes, Revision: r.Revision, SHA256: SHA256(r.Sha256), Text: r.Kind == "text",
		MIMEType: r.MimeType, UpdatedAt: r.UpdatedAt.UTC()}, nil
}

// Piece reads the nth PieceSize bytes, counted from 0, of the content with the hash sum; only the last piece is shorter.
// ErrAbsent if the conversation holds no such content or it has no such piece.
func (p *Portal) Piece(ctx context.Context, conversation string, sum SHA256, n int) ([]byte, error) {
	data, err := p.q.Piece(ctx, db.PieceParams{ConversationID: conversation, Sha256: sum[:], Piece: int32(n)})
	if err != nil {
		return nil, absentOr(fmt.Sprintf("read piece %d of a file's bytes", n), err)
	}
	return data, nil
}

// Upload names bytes that wait in the database for the call that puts them in place. What nobody comes for is dropped
// after a day.
type Upload struct {
	ID     string
	Bytes  int64
	SHA256 SHA256
}

// BodyError says that the bytes to stage could not be read, rather than written.
type BodyError struct{ Err error }

func (e *BodyError) Error() string { return "read the body: " + e.Err.Error() }

// Unwrap gives the reader's own error.
func (e *BodyError) Unwrap() error { return e.Err }

// Stage writes all of body to the database, a piece at a time, so that memory holds at most PieceSize of it. The caller
// bounds the body. Where it fails, with a *BodyError if body did, nothing is left staged.
func (p *Portal) Stage(ctx context.Context, body io.Reader) (Upload, error) {
	s := Upload{ID: rand.Text()}
	hash := sha256.New()
	buffer := make([]byte, PieceSize)
	for piece := int32(0); ; piece++ {
		n, err := fill(body, buffer)
		if err != nil && err != io.EOF {
			return Upload{}, errors.Join(&BodyError{Err: err}, p.Unstage(ctx, s.ID))
		}
		if n > 0 || piece == 0 {
			if err := p.q.Stage(ctx, db.StageParams{ID: s.ID, Piece: piece, Data: buffer[:n]}); err != nil {
				return Upload{}, errors.Join(fmt.Errorf("stage piece %d: %w", piece, err), p.Unstage(ctx, s.ID))
			}
			hash.Write(buffer[:n])
			s.Bytes += int64(n)
		}
		if err == io.EOF {
			s.SHA256 = SHA256(hash.Sum(nil))
			return s, nil
		}
	}
}

// fill reads until buffer is full or the reader has no more, which is io.EOF. Unlike io.ReadFull it leaves the reader's
// io.ErrUnexpectedEOF, a body that was cut off, distinct from a body that ends.
func fill(r io.Reader, buffer []byte) (n int, err error) {
	for n < len(buffer) && err == nil {
		var got int
		got, err = r.Read(buffer[n:])
		n += got
	}
	return n, err
}

// unstageTime bounds the clearing away of what was staged, which goes on when the uploader is gone.
const unstageTime = 5 * time.Second

// Unstage drops staged bytes, also where ctx has ended; dropping what is not there changes nothing.
func (p *Portal) Unstage(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), unstageTime)
	defer cancel()
	if err := p.q.DropStaged(ctx, id); err != nil {
		return fmt.Errorf("drop staged bytes: %w", err)
	}
	return nil
}

// Step is one call in a conversation's trace. Status is empty while the call is not done.
type Step struct {
	TurnID, CallID        string
	Seq                   int64
	Tool, Kind, Actor     string
	State, Status, Code   string
	Paths                 []string
	Attempt               int
	AcceptedAt            time.Time
	StartedAt, FinishedAt *time.Time
}

// StepsAfter says where a page of steps begins: behind the call of Turn accepted At. Only those of OfTurn, if set.
type StepsAfter struct {
	At         time.Time
	Turn, Call string
	OfTurn     string
}

// Steps reads at most limit steps of a conversation, in the order in which their calls were accepted.
func (p *Portal) Steps(ctx context.Context, conversation string, after StepsAfter, limit int) ([]Step, error) {
	rows, err := p.q.StepsPage(ctx, db.StepsPageParams{ConversationID: conversation, Limit: int32(limit), AfterAt: after.At,
		AfterTurn: after.Turn, AfterCall: after.Call, Turn: after.OfTurn})
	if err != nil {
		return nil, fmt.Errorf("read the steps: %w", err)
	}
	steps := make([]Step, len(rows))
	for i, r := range rows {
		steps[i] = Step{TurnID: r.TurnID, CallID: r.CallID, Seq: r.Seq, Tool: r.Tool, Kind: r.Kind, Actor: r.Actor, State: r.State,
			Code: r.Code, Paths: r.Paths, Attempt: int(r.Attempt), AcceptedAt: r.AcceptedAt.UTC(), StartedAt: r.StartedAt,
			FinishedAt: r.FinishedAt}
		if r.Status != nil {
			steps[i].Status = *r.Status
		}
	}
	return steps, nil
}

// Change is one file's change in a conversation's history. A hash is empty, in hex otherwise, where there was no file.
type Change struct {
	Seq                       int64
	Path, Op                  string
	BeforeSHA256, AfterSHA256 string
	BeforeBytes, AfterBytes   int64
	TurnID, CallID, Tool      string
	// Actor is the person who acted through the portal; User the caller of the turn.
	Actor, User string
	At          *time.Time
}

// ChangesAfter says where a page of changes begins: behind the change of Path by the call Seq.
type ChangesAfter struct {
	Seq  int64
	Path string
}

// Changes reads at most limit changes of a conversation, oldest first.
func (p *Portal) Changes(ctx context.Context, conversation string, after ChangesAfter, limit int) ([]Change, error) {
	rows, err := p.q.ChangesPage(ctx, db.ChangesPageParams{ConversationID: conversation, Limit: int32(limit), AfterSeq: after.Seq,
		AfterPath: after.Path})
	if err != nil {
		return nil, fmt.Errorf("read the history: %w", err)
	}
	changes := make([]Change, len(rows))
	for i, r := range rows {
		changes[i] = Change{Seq: r.Seq, Path: r.Path, Op: r.Op, BeforeSHA256: hex.EncodeToString(r.BeforeSha256),
			AfterSHA256: hex.EncodeToString(r.AfterSha256), BeforeBytes: r.BeforeBytes, AfterBytes: r.AfterBytes,
			TurnID: r.TurnID, CallID: r.CallID, Tool: r.Tool, Actor: r.Actor, User: r.CallerUser, At: r.FinishedAt}
	}
	return changes, nil
}
