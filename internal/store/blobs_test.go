package store_test

import (
	"bytes"
	"crypto/sha256"
	"testing"

	"treeline/internal/devenv/devtest"
	"treeline/internal/store"
	"treeline/internal/store/db"
)

func TestBlobsAreReadAsTheyWereWritten(t *testing.T) {
	d := devtest.Postgres(t, store.Migrate)
	q := db.New(d.Pool)
	if _, err := d.Pool.Exec(t.Context(), "INSERT INTO conversations (id) VALUES ('k1'), ('k2')"); err != nil {
		t.Fatal(err)
	}
	var sums []store.SHA256
	want := map[store.SHA256][]byte{}
	for i, size := range []int{0, 1, store.PieceSize - 1, store.PieceSize, store.PieceSize + 1, 3*store.PieceSize + 7} {
		content := bytes.Repeat([]byte{byte('a' + i), 'x', 'y'}, size/3+1)[:size]
		sum := sha256.Sum256(content)
		for piece, data := range store.Pieces(content) {
			err := q.PutPiece(t.Context(), db.PutPieceParams{ConversationID: "k1", Sha256: sum[:], Piece: int32(piece), Data: data})
			if err != nil {
				t.Fatal(err)
			}
		}
		sums, want[sum] = append(sums, sum), content
	}
	for _, cache := range []int64{0, 64 << 20} {
		blobs := store.NewBlobs(q, cache)
		for range 2 { // from the database, then from the cache if there is one
			got, err := blobs.GetAll(t.Context(), "k1", sums)
			if err != nil {
				t.Fatal(err)
			}
			for _, sum := range sums {
				if !bytes.Equal(got[sum], want[sum]) {
					t.Errorf("with %d bytes of cache, %d bytes are read as %d", cache, len(want[sum]), len(got[sum]))
				}
				if cap(got[sum]) > len(want[sum])+len(want[sum])/8+64 {
					t.Errorf("%d bytes take %d", len(want[sum]), cap(got[sum]))
				}
			}
		}
		if _, err := blobs.Get(t.Context(), "k2", sums[1]); err == nil {
			t.Error("a conversation is answered from another's bytes")
		}
	}
}
