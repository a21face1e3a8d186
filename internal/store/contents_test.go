package store_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"treeline/internal/devenv/devtest"
	"treeline/internal/store"
	"treeline/internal/store/db"
)

func TestMain(m *testing.M) { devtest.Main(m) }

func TestContentIsReadAsItWasWritten(t *testing.T) {
	d := devtest.Postgres(t, store.Migrate)
	q := db.New(d.Pool)
	for _, size := range []int{0, 1, store.PieceSize - 1, store.PieceSize, store.PieceSize + 1, 3*store.PieceSize + 7} {
		want := bytes.Repeat([]byte("0123456789abcdefghijk"), size/21+1)[:size]
		c, err := store.WriteContent(t.Context(), q, bytes.NewReader(want), int64(size))
		if err != nil || c.Bytes != int64(size) {
			t.Fatalf("%d bytes: %d written, error %v", size, c.Bytes, err)
		}
		got, err := store.ContentBytes(t.Context(), q, c)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%d bytes: %d read, error %v", size, len(got), err)
		}
		r := store.ReadContent(t.Context(), q, c)
		for _, at := range []int{0, size / 2, max(0, size-3)} {
			part, err := io.ReadAll(r.Part(int64(at), 3))
			if err != nil || !bytes.Equal(part, want[at:min(at+3, size)]) {
				t.Errorf("%d bytes from %d: %q, error %v", size, at, part, err)
			}
		}
	}
}

func TestContentThatIsTooLong(t *testing.T) {
	d := devtest.Postgres(t, store.Migrate)
	q := db.New(d.Pool)
	if _, err := store.WriteContent(t.Context(), q, strings.NewReader("12345"), 4); !errors.Is(err, store.ErrTooLong) {
		t.Errorf("error %v", err)
	}
	var left int
	if err := d.Pool.QueryRow(t.Context(), "SELECT count(*) FROM contents").Scan(&left); err != nil || left != 0 {
		t.Errorf("%d contents are left, error %v", left, err)
	}
}

func TestContentWithAMissingPiece(t *testing.T) {
	d := devtest.Postgres(t, store.Migrate)
	q := db.New(d.Pool)
	c, err := store.WriteContent(t.Context(), q, bytes.NewReader(make([]byte, 2*store.PieceSize)), 2*store.PieceSize)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Pool.Exec(t.Context(), "DELETE FROM content_pieces WHERE piece = 1"); err != nil {
		t.Fatal(err)
	}
	if _, err := store.ContentBytes(t.Context(), q, c); !errors.Is(err, store.ErrAbsent) {
		t.Errorf("error %v", err)
	}
}
