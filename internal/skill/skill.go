package skill

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"treeline/internal/call"
	"treeline/internal/store"
	"treeline/internal/store/db"
)

// archiveOverhead is how much larger than its files an archive may be.
const archiveOverhead = 4 << 20

// Entry is the record of one file of a skill.
type Entry struct {
	Path  string
	Bytes int64
	at    int64
}

// Skill is the record of a skill: its files by path, without their bytes.
type Skill struct {
	Name    string
	Files   []Entry
	content store.Content
}

// Bytes is the size of all its files together.
func (s Skill) Bytes() int64 { return s.content.Bytes }

// Store is the skills in Postgres. It is safe for concurrent use.
type Store struct {
	pool    *pgxpool.Pool
	q       *db.Queries
	mounted int64
	// unpacking is held while an archive is in memory.
	unpacking chan struct{}
}

// New makes a store over a migrated database. Mounted is how many bytes of one skill a run mounts: what is larger is kept
// up to MaxBytes, unless it is a small archive that only becomes so large.
func New(pool *pgxpool.Pool, mounted int64) *Store {
	return &Store{pool: pool, q: db.New(pool), mounted: mounted, unpacking: make(chan struct{}, 1)}
}

// Put writes a skill out of a zip archive, in place of the one that had the name, and reports whether the name is new.
// Nothing is changed unless the whole archive is good. Errors: the refusals of Unpack, and a *store.BodyError.
func (s *Store) Put(ctx context.Context, name string, archive io.Reader) (Skill, bool, error) {
	select {
	case s.unpacking <- struct{}{}:
		defer func() { <-s.unpacking }()
	case <-ctx.Done():
		return Skill{}, false, ctx.Err()
	}
	most := max(s.mounted, MaxBytes) + archiveOverhead
	packed, err := io.ReadAll(io.LimitReader(archive, most+1))
	if err != nil {
		return Skill{}, false, &store.BodyError{Err: err}
	}
	if int64(len(packed)) > most {
		return Skill{}, false, refuseSize(most - archiveOverhead)
	}
	bundle, refusal := Unpack(packed, allowed(packed, s.mounted))
	if refusal != nil {
		return Skill{}, false, refusal
	}
	return s.put(ctx, name, bundle)
}

func (s *Store) put(ctx context.Context, name string, b Bundle) (Skill, bool, error) {
	sk := Skill{Name: name}
	var readers []io.Reader
	var at int64
	for _, f := range b.Files {
		size := int64(len(f.Content))
		sk.Files = append(sk.Files, Entry{Path: f.Path, Bytes: size, at: at})
		readers = append(readers, bytes.NewReader(f.Content))
		at += size
	}
	var err error
	if sk.content, err = store.WriteContent(ctx, s.q, io.MultiReader(readers...), b.Bytes); err != nil {
		return sk, false, fmt.Errorf("write the skill: %w", err)
	}
	made := false
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		var err error
		made, err = replace(ctx, s.q.WithTx(tx), sk)
		return err
	})
	if err != nil {
		return sk, false, errors.Join(fmt.Errorf("put the skill in place: %w", err), store.DropContent(ctx, s.q, sk.content.ID))
	}
	return sk, made, nil
}

func replace(ctx context.Context, q *db.Queries, s Skill) (made bool, err error) {
	if err := q.LockName(ctx, "skill "+s.Name); err != nil {
		return false, err
	}
	old, err := q.LockSkill(ctx, s.Name)
	if errors.Is(err, pgx.ErrNoRows) {
		made, err = true, nil
	}
	if err != nil {
		return false, err
	}
	if err := q.PutSkill(ctx, db.PutSkillParams{Name: s.Name, ContentID: s.content.ID}); err != nil {
		return false, err
	}
	if err := q.DropSkillFiles(ctx, s.Name); err != nil {
		return false, err
	}
	files := db.PutSkillFilesParams{SkillName: s.Name}
	for _, f := range s.Files {
		files.Paths, files.Ats, files.Sizes = append(files.Paths, f.Path), append(files.Ats, f.at), append(files.Sizes, f.Bytes)
	}
	if err := q.PutSkillFiles(ctx, files); err != nil {
		return false, err
	}
	return made, store.UseContent(ctx, q, s.content.ID, old)
}

// Find gives the records of those of the names that are skills, in the order of the names. Whether a turn may reach a
// skill is the turn's to say: ask only for what it may.
func (s *Store) Find(ctx context.Context, names []string) ([]Skill, error) {
	if len(names) == 0 {
		return nil, nil
	}
	rows, err := s.q.SkillFiles(ctx, names)
	if err != nil {
		return nil, fmt.Errorf("look for skills: %w", err)
	}
	found := map[string]*Skill{}
	for _, r := range rows {
		sk, ok := found[r.Name]
		if !ok {
			sk = &Skill{Name: r.Name, content: store.Content{ID: r.ContentID, Bytes: r.ContentBytes}}
			found[r.Name] = sk
		}
		sk.Files = append(sk.Files, Entry{Path: r.Path, Bytes: r.Bytes, at: r.At})
	}
	var out []Skill
	for _, name := range names {
		if sk, ok := found[name]; ok {
			out = append(out, *sk)
		}
	}
	return out, nil
}

// Text reads a skill's instructions.
func (s *Store) Text(ctx context.Context, sk Skill) (string, error) {
	for _, f := range sk.Files {
		if f.Path != TextFile {
			continue
		}
		b, err := io.ReadAll(s.Reader(ctx, sk).Open(f))
		if err != nil {
			return "", fmt.Errorf("read the skill's text: %w", err)
		}
		return string(b), nil
	}
	return "", fmt.Errorf("the skill %s has no %s", sk.Name, TextFile)
}

// Reader reads a skill's files. Read one after the other in the order of Files, small ones are fetched together.
type Reader struct{ content *store.ContentReader }

// Reader makes a reader of a skill's files, whose queries ctx bounds. It is for one goroutine.
func (s *Store) Reader(ctx context.Context, sk Skill) *Reader {
	return &Reader{store.ReadContent(ctx, s.q, sk.content)}
}

// Open gives the bytes of one of the skill's files.
func (r *Reader) Open(f Entry) io.Reader { return r.content.Part(f.at, f.Bytes) }

// Refuse says that a turn has no such skill, in the same words whether there is one or not.
func Refuse(name string) *call.Refusal {
	return call.Refuse(call.InputNotFound, "There is no skill %q in this turn. Nothing was done. Use the name of a skill as you were given it.", name)
}
