package skill

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"testing"

	"treeline/internal/call"
	"treeline/internal/devenv/devtest"
	"treeline/internal/store"
)

func TestMain(m *testing.M) { devtest.Main(m) }

func TestASkillIsReplacedWholeOrNotAtAll(t *testing.T) {
	d := devtest.Postgres(t, store.Migrate)
	s := New(d.Pool, 4<<20)
	ctx := context.Background()
	put := func(body []byte) (bool, error) {
		_, made, err := s.Put(ctx, "sk", bytes.NewReader(body))
		return made, err
	}
	if made, err := put(archive(t, text("one"), member{name: "old", content: "x"})); !made || err != nil {
		t.Fatal(made, err)
	}
	big := string(bytes.Repeat([]byte("0123456789"), 250_000))
	if made, err := put(archive(t, text("two"), member{name: "a", content: "small"}, member{name: "b", content: big}, member{name: "c"})); made || err != nil {
		t.Fatal(made, err)
	}
	if _, err := put(archive(t, text("three"), member{name: "../x", content: "x"})); err == nil {
		t.Fatal("a bad archive was taken")
	}
	found, err := s.Find(ctx, []string{"none", "sk"})
	if err != nil || len(found) != 1 || found[0].Name != "sk" || found[0].Bytes() != int64(len(big)+8) {
		t.Fatalf("found %+v, error %v", found, err)
	}
	if text, err := s.Text(ctx, found[0]); text != "two" || err != nil {
		t.Errorf("text %q, error %v", text, err)
	}
	want := map[string]string{"SKILL.md": "two", "a": "small", "b": big, "c": ""}
	reader := s.Reader(ctx, found[0])
	for _, f := range found[0].Files {
		b, err := io.ReadAll(reader.Open(f))
		if err != nil || string(b) != want[f.Path] || int64(len(b)) != f.Bytes {
			t.Errorf("%s: %d bytes, error %v, want %d", f.Path, len(b), err, len(want[f.Path]))
		}
		delete(want, f.Path)
	}
	if len(want) > 0 {
		t.Errorf("missing %v", want)
	}
	var contents int
	if err := d.Pool.QueryRow(ctx, "SELECT count(*) FROM contents WHERE due_at IS NULL").Scan(&contents); err != nil || contents != 1 {
		t.Errorf("%d contents in use, error %v", contents, err)
	}
}

func TestABodyThatIsTooLong(t *testing.T) {
	d := devtest.Postgres(t, store.Migrate)
	s := New(d.Pool, 1000)
	_, _, err := s.Put(context.Background(), "sk", io.LimitReader(zeros{}, 100<<20))
	if got := err.Error(); got != refuseSize(MaxBytes).Error() {
		t.Errorf("error %s", got)
	}
}

// What a run cannot mount is kept where it is honestly large; a small archive that becomes large is a bomb.
func TestASkillThatIsLargerThanARunMounts(t *testing.T) {
	d := devtest.Postgres(t, store.Migrate)
	s := New(d.Pool, 1000)
	random := make([]byte, 5000)
	_, _ = rand.NewChaCha8([32]byte{}).Read(random)
	if sk, _, err := s.Put(t.Context(), "large", bytes.NewReader(archive(t, text("t"), member{name: "r", content: string(random)}))); err != nil || sk.Bytes() != 5001 {
		t.Errorf("%d bytes, error %v", sk.Bytes(), err)
	}
	_, _, err := s.Put(t.Context(), "bomb", bytes.NewReader(archive(t, text("t"), member{name: "z", content: string(make([]byte, 5000))})))
	var r *call.Refusal
	if !errors.As(err, &r) || r.Code != call.SkillTooLarge {
		t.Errorf("error %v", err)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }
