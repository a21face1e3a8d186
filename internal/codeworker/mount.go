package codeworker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"treeline/internal/sandbox"
	"treeline/internal/store"
	"treeline/internal/store/db"
	"treeline/internal/workspace"
)

const (
	// mountAtOnce bounds how much content of small files one query brings into memory, in bytes, and mountFiles how many.
	mountAtOnce = 4 << 20
	mountFiles  = 500
)

// sandboxError is a failure of the sandbox itself, not of what was to be put there.
type sandboxError struct{ err error }

func (e *sandboxError) Error() string { return e.err.Error() }
func (e *sandboxError) Unwrap() error { return e.err }

// mount fills the session with the tree and the inputs. A *sandboxError is the sandbox's; any other error is that of
// reading what was to be mounted.
func (r *run) mount(ctx context.Context) error {
	var batch []workspace.Entry
	var size int64
	for _, e := range r.before.All() {
		if e.Bytes > store.PieceSize {
			if err := r.put(ctx, inTree(e.Path), &pieces{ctx: ctx, run: r, sum: e.SHA256, left: e.Bytes}); err != nil {
				return err
			}
			continue
		}
		if size += e.Bytes; size > mountAtOnce || len(batch) == mountFiles {
			if err := r.mountSmall(ctx, batch); err != nil {
				return err
			}
			batch, size = batch[:0], e.Bytes
		}
		batch = append(batch, e)
	}
	if err := r.mountSmall(ctx, batch); err != nil {
		return err
	}
	for _, m := range r.plan.Mounts {
		if err := r.mountInput(ctx, m); err != nil {
			return err
		}
	}
	return nil
}

func inTree(path string) string { return sandbox.Workspace + "/" + path }

// mountSmall mounts files whose bytes come in one query.
func (r *run) mountSmall(ctx context.Context, batch []workspace.Entry) error {
	sums := make([]store.SHA256, len(batch))
	for i, e := range batch {
		sums[i] = e.SHA256
	}
	contents, err := r.blobs.GetAll(ctx, r.work.Key.Conversation, sums)
	if err != nil {
		return err
	}
	for _, e := range batch {
		if err := r.put(ctx, inTree(e.Path), bytes.NewReader(contents[e.SHA256])); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) mountInput(ctx context.Context, m Mount) error {
	content, err := m.Open(ctx)
	if err != nil {
		return fmt.Errorf("open the input %s: %w", m.Path, err)
	}
	err = r.put(ctx, m.Path, io.LimitReader(content, m.Size)) // what was counted, and no more
	return errors.Join(err, content.Close())
}

// put tells the reader's failures from the sandbox's.
func (r *run) put(ctx context.Context, path string, content io.Reader) error {
	source := &watched{Reader: content}
	err := r.session.Put(ctx, path, source)
	switch {
	case err == nil:
		return nil
	case source.err != nil:
		return fmt.Errorf("read %s to mount it: %w", path, source.err)
	}
	return &sandboxError{fmt.Errorf("mount %s: %w", path, err)}
}

// watched remembers why reading failed.
type watched struct {
	io.Reader
	err error
}

func (w *watched) Read(p []byte) (int, error) {
	n, err := w.Reader.Read(p)
	if err != nil && err != io.EOF {
		w.err = err
	}
	return n, err
}

// pieces reads a large file piece by piece, so that one piece of it is in memory at a time.
type pieces struct {
	ctx  context.Context
	run  *run
	sum  store.SHA256
	left int64
	next int32
	rest []byte
}

func (p *pieces) Read(b []byte) (int, error) {
	for len(p.rest) == 0 {
		if p.left <= 0 {
			return 0, io.EOF
		}
		data, err := p.run.Ledger.Queries().Piece(p.ctx, db.PieceParams{ConversationID: p.run.work.Key.Conversation, Sha256: p.sum[:],
			Piece: p.next})
		if err != nil {
			return 0, fmt.Errorf("read piece %d of a file's bytes: %w", p.next, err)
		}
		p.rest, p.left = data, p.left-int64(len(data))
		p.next++
	}
	n := copy(b, p.rest)
	p.rest = p.rest[n:]
	return n, nil
}
