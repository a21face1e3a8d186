package artifact

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"treeline/internal/call"
	"treeline/internal/store"
	"treeline/internal/store/db"
)

// maxName bounds titles, owners and departments, in bytes.
const maxName = 1024

// ErrOtherOwner says that an artifact has another owner than was named. An owner does not change.
var ErrOtherOwner = errors.New("the artifact has another owner")

// Put is a version as the portal puts it. Of an artifact that is there, what is empty stays as it was; a new one needs a
// kind, an owner and a department, and its title is its id if it has none.
type Put struct {
	ID, Title, Owner, Department string
	Kind                         Kind
}

// CheckTitle refuses a title that cannot be shown on one line.
func CheckTitle(title string) *call.Refusal { return checkName("title", title) }

func checkName(what, value string) *call.Refusal {
	if utf8.ValidString(value) && len(value) <= maxName && !strings.ContainsFunc(value, unicode.IsControl) {
		return nil
	}
	return call.Refuse(call.InvalidArguments, "The %s must be UTF-8 text of at most %d bytes without control characters. Nothing was saved.", what, maxName)
}

// Put writes a new artifact, or a new version of one that is there, and reports whether the artifact is new. What is equal
// to the newest version in every way makes none. Nothing is changed before all of body is there. Errors: a *call.Refusal
// for what cannot be put and (too_large) past MaxText or MaxFile, ErrOtherOwner, a *store.BodyError.
func (s *Store) Put(ctx context.Context, p Put, body io.Reader) (Artifact, bool, error) {
	now, there, err := newest(ctx, s.q, p.ID)
	if err != nil {
		return Artifact{}, false, err
	}
	// What can be told from the request alone is told before the body is taken in.
	planned, _, err := p.over(now, there)
	if err != nil {
		return Artifact{}, false, err
	}
	content, err := s.writeBody(ctx, planned.Kind, body)
	if err != nil {
		return Artifact{}, false, err
	}
	var a Artifact
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		var err error
		a, there, err = p.write(ctx, s.q.WithTx(tx), planned.Kind, content)
		return err
	})
	if err != nil || a.Content.ID != content.ID {
		err = errors.Join(err, store.DropContent(ctx, s.q, content.ID))
	}
	return a, !there, err
}

// newest reads the newest version and locks the artifact for as long as the transaction of q lasts, if it is one.
func newest(ctx context.Context, q *db.Queries, id string) (Details, bool, error) {
	n, err := q.LockArtifact(ctx, id)
	if err != nil {
		return Details{}, false, fmt.Errorf("lock the artifact: %w", err)
	}
	if n == 0 {
		return Details{}, false, nil
	}
	r, err := q.ArtifactVersion(ctx, db.ArtifactVersionParams{ID: id})
	if err != nil {
		return Details{}, false, fmt.Errorf("look for the artifact: %w", err)
	}
	a := Artifact{ID: id, Version: int(r.Version), Newest: int(r.Version), Kind: Kind(r.Kind), Title: r.Title, Name: r.Name,
		Content: store.Content{ID: r.ContentID, Bytes: r.Bytes, SHA256: store.SHA256(r.Sha256)}}
	return Details{Artifact: a, Owner: r.Owner, Department: r.Department}, true, nil
}

// over gives the version that p makes after the newest one, without its content.
func (p Put) over(now Details, there bool) (a Artifact, department string, err error) {
	for _, f := range []struct{ what, value string }{{"title", p.Title}, {"owner", p.Owner}, {"department", p.Department}} {
		if r := checkName(f.what, f.value); r != nil {
			return a, "", r
		}
	}
	if p.Kind != "" && !p.Kind.known() {
		return a, "", call.Refuse(call.InvalidArguments, "The kind must be one of %v. Nothing was saved.", Kinds)
	}
	if !there {
		if p.Kind == "" || p.Owner == "" || p.Department == "" {
			return a, "", call.Refuse(call.InvalidArguments, "A new artifact needs a kind, an owner and a department. Nothing was saved.")
		}
		a = Artifact{ID: p.ID, Version: 1, Kind: p.Kind, Title: or(p.Title, p.ID)}
		a.Name = a.Title
		return a, p.Department, nil
	}
	if p.Owner != "" && p.Owner != now.Owner {
		return a, "", ErrOtherOwner
	}
	a = Artifact{ID: p.ID, Version: now.Version + 1, Kind: Kind(or(string(p.Kind), string(now.Kind))), Title: or(p.Title, now.Title),
		Name: or(p.Title, now.Name)}
	return a, or(p.Department, now.Department), nil
}

func or(value, otherwise string) string {
	if value == "" {
		return otherwise
	}
	return value
}

func (k Kind) known() bool {
	for _, known := range Kinds {
		if k == known {
			return true
		}
	}
	return false
}

func (s *Store) writeBody(ctx context.Context, kind Kind, body io.Reader) (store.Content, error) {
	most := int64(MaxFile)
	if kind.Textual() {
		most, body = MaxText, &textReader{r: body, kind: kind}
	}
	content, err := store.WriteContent(ctx, s.q, body, most)
	var refusal *call.Refusal
	switch {
	case errors.As(err, &refusal):
		return content, refusal
	case errors.Is(err, store.ErrTooLong):
		return content, call.Refuse(call.TooLarge, "An artifact of kind %s has at most %d bytes. Nothing was saved.", kind, most)
	case err != nil:
		return content, fmt.Errorf("write the artifact: %w", err)
	}
	return content, nil
}

// write writes the version under the artifact's lock. Content has been checked to be of kind.
func (p Put) write(ctx context.Context, q *db.Queries, kind Kind, content store.Content) (a Artifact, there bool, err error) {
	if err := q.LockName(ctx, "artifact "+p.ID); err != nil {
		return a, false, fmt.Errorf("take a turn at the artifact: %w", err)
	}
	now, there, err := newest(ctx, q, p.ID)
	if err != nil {
		return a, there, err
	}
	p.Kind = kind
	a, department, err := p.over(now, there)
	if err != nil {
		return a, there, err
	}
	a.Content, a.Newest = content, a.Version
	if there && a.Kind == now.Kind && a.Title == now.Title && department == now.Department && content.SHA256 == now.SHA256 {
		return now.Artifact, there, nil
	}
	if there {
		_, err = q.RaiseArtifact(ctx, db.RaiseArtifactParams{ID: p.ID, Expected: int32(now.Version)})
	} else {
		err = q.InsertArtifact(ctx, db.InsertArtifactParams{ID: p.ID, Owner: p.Owner})
	}
	if err != nil {
		return a, there, fmt.Errorf("take the artifact's next version: %w", err)
	}
	err = q.InsertArtifactVersion(ctx, db.InsertArtifactVersionParams{ArtifactID: p.ID, Version: int32(a.Version), Kind: string(a.Kind),
		Title: a.Title, Name: a.Name, ContentID: content.ID, Department: department, Bytes: content.Bytes})
	if err != nil {
		return a, there, fmt.Errorf("write the artifact's version: %w", err)
	}
	return a, there, store.UseContent(ctx, q, content.ID, "")
}

// textReader fails with a *call.Refusal at the first byte that keeps what it reads from being text.
type textReader struct {
	r    io.Reader
	kind Kind
	rest []byte // the beginning of a character whose end has not been read
}

func (t *textReader) Read(p []byte) (int, error) {
	n, err := t.r.Read(p)
	seen := append(t.rest, p[:n]...)
	whole := len(seen)
	if err == nil {
		whole -= unfinished(seen)
	}
	if bytes.IndexByte(seen[:whole], 0) >= 0 || !utf8.Valid(seen[:whole]) {
		return 0, call.Refuse(call.InvalidArguments, "An artifact of kind %s is text in UTF-8 without U+0000, and these bytes are not. Nothing was "+
			"saved. Put them with the kind %s.", t.kind, File)
	}
	t.rest = append([]byte(nil), seen[whole:]...)
	return n, err
}

// unfinished is how many bytes at the end of b may be the beginning of a character.
func unfinished(b []byte) int {
	for i := 1; i <= min(len(b), utf8.UTFMax-1); i++ {
		if c := b[len(b)-i]; utf8.RuneStart(c) {
			if utf8.FullRune(b[len(b)-i:]) {
				return 0
			}
			return i
		}
	}
	return 0
}
