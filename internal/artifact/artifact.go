package artifact

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"treeline/internal/call"
	"treeline/internal/store"
	"treeline/internal/store/db"
	"treeline/internal/turn"
)

const (
	// MaxText is how many bytes an artifact of a kind of text may have; MaxFile is a file's.
	MaxText = 64 << 20
	MaxFile = 1 << 30
)

// Artifact is one version of an artifact.
type Artifact struct {
	ID      string
	Version int
	// Newest is the artifact's newest version.
	Newest int
	Kind   Kind
	// Title is what people see; Name is the file's, for its ending.
	Title, Name string
	// MayChange says that the caller it was opened for may give it new versions.
	MayChange bool
	store.Content
}

// Path is where code finds the artifact, below the folder of artifacts.
func (a Artifact) Path() string { return a.ID + a.Kind.Ending(a.Name) }

// Store is the artifacts in Postgres. It is safe for concurrent use.
type Store struct {
	pool *pgxpool.Pool
	q    *db.Queries
}

// New makes a store over a migrated database.
func New(pool *pgxpool.Pool) *Store { return &Store{pool: pool, q: db.New(pool)} }

// Open gives a version, 0 the newest, of an artifact that is the caller's own or is shared with him or his department.
// Whatever else there is, or is not, is store.ErrAbsent.
func Open(ctx context.Context, q *db.Queries, caller turn.Caller, id string, version int) (Artifact, error) {
	r, err := q.OpenArtifact(ctx, db.OpenArtifactParams{ID: id, Caller: caller.User, Department: caller.Department, Version: int32(version)})
	if errors.Is(err, pgx.ErrNoRows) {
		return Artifact{}, store.ErrAbsent
	}
	if err != nil {
		return Artifact{}, fmt.Errorf("open the artifact: %w", err)
	}
	return Artifact{ID: r.ID, Version: int(r.Version), Newest: int(r.Newest), Kind: Kind(r.Kind), Title: r.Title, Name: r.Name,
		MayChange: r.MayChange, Content: store.Content{ID: r.ContentID, Bytes: r.Bytes, SHA256: store.SHA256(r.Sha256)}}, nil
}

// OpenToChange gives the newest version of an artifact that the caller may change. The refusal is input_not_found, in the
// same words whether there is such an artifact or not, or artifact_read_only.
func OpenToChange(ctx context.Context, q *db.Queries, caller turn.Caller, id string) (Artifact, error) {
	a, err := Open(ctx, q, caller, id, 0)
	if errors.Is(err, store.ErrAbsent) {
		return a, call.Refuse(call.InputNotFound, "There is no artifact %q that this turn's caller may open. Nothing was saved. Use an "+
			"artifactId as you were given it, or save a new artifact without one.", id)
	}
	if err == nil && !a.MayChange {
		return a, call.Refuse(call.ArtifactReadOnly, "The artifact %q is shared with this turn's caller to read, not to change. Nothing was "+
			"saved. Save the file as a new artifact, with save_artifact without artifactId.", id)
	}
	return a, err
}

// Details are what the portal sees of a version beyond the artifact.
type Details struct {
	Artifact
	Owner string
	// MadeBy is the caller whose turn made the version, empty for the portal; Department is billed for its bytes.
	MadeBy, Department string
	// Conversation and Seq name the call that saved it; empty for the portal.
	Conversation string
	Seq          int64
	// CallID and CallTool name the call that last made the file; Code is what it ran, if it ran code.
	CallID, CallTool string
	Code             []byte
	CreatedAt        time.Time
}

// Get gives a version, 0 the newest, of any artifact: for the portal. The error may be store.ErrAbsent.
func (s *Store) Get(ctx context.Context, id string, version int) (Details, error) {
	r, err := s.q.ArtifactVersion(ctx, db.ArtifactVersionParams{ID: id, Version: int32(version)})
	if errors.Is(err, pgx.ErrNoRows) {
		return Details{}, store.ErrAbsent
	}
	if err != nil {
		return Details{}, fmt.Errorf("read the artifact: %w", err)
	}
	d := Details{Owner: r.Owner, MadeBy: r.MadeBy, Department: r.Department, CallID: r.CallID, CallTool: r.CallTool, Code: r.Code,
		CreatedAt: r.CreatedAt.UTC()}
	d.Artifact = Artifact{ID: r.ID, Version: int(r.Version), Newest: int(r.Newest), Kind: Kind(r.Kind), Title: r.Title, Name: r.Name,
		Content: store.Content{ID: r.ContentID, Bytes: r.Bytes, SHA256: store.SHA256(r.Sha256)}}
	if r.ConversationID != nil && r.Seq != nil {
		d.Conversation, d.Seq = *r.ConversationID, *r.Seq
	}
	return d, nil
}

// Reader reads a version's bytes; ctx bounds its queries.
func (s *Store) Reader(ctx context.Context, a Artifact) *store.ContentReader {
	return store.ReadContent(ctx, s.q, a.Content)
}

// Source is one of the files that a version was made from, as it was.
type Source struct {
	Path string
	store.Content
}

// Sources gives the files that a version was made from, by path.
func (s *Store) Sources(ctx context.Context, id string, version int) ([]Source, error) {
	rows, err := s.q.ArtifactSources(ctx, db.ArtifactSourcesParams{ArtifactID: id, Version: int32(version)})
	if err != nil {
		return nil, fmt.Errorf("read what the artifact was made from: %w", err)
	}
	out := make([]Source, len(rows))
	for i, r := range rows {
		out[i] = Source{Path: r.Path, Content: store.Content{ID: r.ContentID, Bytes: r.Bytes, SHA256: store.SHA256(r.Sha256)}}
	}
	return out, nil
}
