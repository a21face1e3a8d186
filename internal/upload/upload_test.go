package upload_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"

	"treeline/internal/call"
	"treeline/internal/devenv/devtest"
	"treeline/internal/store"
	"treeline/internal/store/db"
	"treeline/internal/upload"
)

func TestMain(m *testing.M) { devtest.Main(m) }

type fixture struct {
	t *testing.T
	*upload.Store
	q  *db.Queries
	db *devtest.Database
}

func newFixture(t *testing.T) fixture {
	t.Helper()
	d := devtest.Postgres(t, store.Migrate)
	return fixture{t, upload.New(d.Pool), db.New(d.Pool), d}
}

func (f fixture) put(id, collection, name, body string) upload.Upload {
	f.t.Helper()
	u, _, err := f.Put(context.Background(), id, collection, name, strings.NewReader(body))
	if err != nil {
		f.t.Fatal(err)
	}
	return u
}

// open gives what a turn with this knowledge and these collections finds of an upload.
func (f fixture) open(id string, knowledge, collections []string) (db.OpenUploadsRow, bool) {
	f.t.Helper()
	rows, err := f.q.OpenUploads(context.Background(), db.OpenUploadsParams{Ids: []string{id}, Knowledge: knowledge, Collections: collections})
	if err != nil {
		f.t.Fatal(err)
	}
	if len(rows) == 0 {
		return db.OpenUploadsRow{}, false
	}
	return rows[0], true
}

func (f fixture) bytes(id string, size int64) string {
	f.t.Helper()
	b, err := store.ContentBytes(context.Background(), f.q, store.Content{ID: id, Bytes: size})
	if err != nil {
		f.t.Fatal(err)
	}
	return string(b)
}

func (f fixture) contents() (inUse, due int) {
	f.t.Helper()
	err := f.db.Pool.QueryRow(context.Background(),
		"SELECT count(*) FILTER (WHERE due_at IS NULL), count(*) FILTER (WHERE due_at IS NOT NULL) FROM contents").Scan(&inUse, &due)
	if err != nil {
		f.t.Fatal(err)
	}
	return inUse, due
}

func TestWhoOpensAnUpload(t *testing.T) {
	f := newFixture(t)
	f.put("in", "col1", "in.csv", "1")
	f.put("out", "", "out.csv", "2")
	for _, c := range []struct {
		name, id               string
		knowledge, collections []string
		want                   bool
	}{
		{"in one of the caller's collections", "in", []string{}, []string{"col0", "col1"}, true},
		{"in another's collection", "in", []string{}, []string{"col2"}, false},
		{"bound to the turn's knowledge", "in", []string{"in"}, []string{}, true},
		{"in no collection, and the caller has one without a name", "out", []string{}, []string{""}, false},
		{"in no collection, bound", "out", []string{"out"}, []string{}, true},
		{"knowledge of another", "in", []string{"out"}, []string{}, false},
		{"bound, but not there", "none", []string{"none"}, []string{}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, got := f.open(c.id, c.knowledge, c.collections); got != c.want {
				t.Errorf("opens: %t, want %t", got, c.want)
			}
		})
	}
}

func TestAnUploadIsReplacedWhole(t *testing.T) {
	f := newFixture(t)
	f.put("u", "c", "old.txt", "old")
	big := strings.Repeat("0123456789abcdef", 3*store.PieceSize/16) + "x"
	u, made, err := f.Put(context.Background(), "u", "d", "new.txt", strings.NewReader(big))
	if err != nil || made || u.Bytes != int64(len(big)) {
		t.Fatalf("made %t, bytes %d, error %v", made, u.Bytes, err)
	}
	r, ok := f.open("u", []string{}, []string{"d"})
	if !ok || r.Name != "new.txt" || f.bytes(r.ContentID, r.Bytes) != big {
		t.Error("the new upload is not there whole")
	}
	if inUse, due := f.contents(); inUse != 1 || due != 1 {
		t.Errorf("%d contents in use and %d due, want 1 and 1", inUse, due)
	}
}

// An upload of any size passes through in pieces, in both directions.
func TestALargeUploadIsNeverWholeInMemory(t *testing.T) {
	f := newFixture(t)
	const size = 100 << 20
	w := &watcher{t: t, left: size}
	u, _, err := f.Put(context.Background(), "u", "c", "big", w)
	if err != nil || u.Bytes != size {
		t.Fatal(u.Bytes, err)
	}
	r, _ := f.open("u", []string{"u"}, []string{})
	w.left = size
	if n, err := io.Copy(w, store.ReadContent(context.Background(), f.q, store.Content{ID: r.ContentID, Bytes: r.Bytes})); n != size || err != nil {
		t.Fatal(n, err)
	}
	if w.most > 32<<20 {
		t.Errorf("%d MiB were in memory", w.most>>20)
	}
}

// watcher gives and takes bytes, and looks at the memory meanwhile.
type watcher struct {
	t    *testing.T
	left int
	seen int
	most uint64
}

func (w *watcher) Read(p []byte) (int, error) {
	if w.left == 0 {
		return 0, io.EOF
	}
	n := min(len(p), w.left)
	w.left -= n
	w.look(n)
	return n, nil
}

func (w *watcher) Write(p []byte) (int, error) {
	w.look(len(p))
	return len(p), nil
}

func (w *watcher) look(n int) {
	if w.seen += n; w.seen >= 8<<20 {
		w.seen = 0
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		w.most = max(w.most, m.HeapAlloc)
	}
}

func TestABrokenBodyLeavesTheUploadAsItWas(t *testing.T) {
	f := newFixture(t)
	f.put("u", "c", "a.txt", "old")
	broken := io.MultiReader(bytes.NewReader(make([]byte, store.PieceSize+5)), errReader{})
	_, _, err := f.Put(context.Background(), "u", "c", "a.txt", broken)
	var body *store.BodyError
	if !errors.As(err, &body) {
		t.Fatalf("error %v, want a BodyError", err)
	}
	r, _ := f.open("u", []string{"u"}, []string{})
	if got := f.bytes(r.ContentID, r.Bytes); got != "old" {
		t.Errorf("the upload has become %q", got)
	}
	if inUse, due := f.contents(); inUse != 1 || due != 0 {
		t.Errorf("%d contents in use and %d due, want 1 and none", inUse, due)
	}
}

type errReader struct{}

func (errReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func TestAnEmptyUpload(t *testing.T) {
	f := newFixture(t)
	f.put("u", "c", "", "")
	r, ok := f.open("u", []string{"u"}, []string{})
	if !ok || r.Name != "u" || r.Bytes != 0 || f.bytes(r.ContentID, 0) != "" {
		t.Errorf("got %+v", r)
	}
}

func TestNamesThatCannotBeKept(t *testing.T) {
	f := newFixture(t)
	for _, name := range []string{"a\x00b", "\xff", strings.Repeat("x", 1025)} {
		_, _, err := f.Put(context.Background(), "u", "c", name, strings.NewReader("1"))
		if code(err) != call.InvalidArguments {
			t.Errorf("name %.10q: %v", name, err)
		}
		if _, _, err = f.Put(context.Background(), "u", name, "n", strings.NewReader("1")); code(err) != call.InvalidArguments {
			t.Errorf("collection %.10q: %v", name, err)
		}
	}
	if inUse, due := f.contents(); inUse+due != 0 {
		t.Errorf("%d contents are there", inUse+due)
	}
}

func code(err error) call.Code {
	var r *call.Refusal
	if errors.As(err, &r) {
		return r.Code
	}
	return ""
}

func TestPassages(t *testing.T) {
	f := newFixture(t)
	f.put("u", "c", "doc.pdf", "%PDF")
	for _, c := range []struct{ name, body, stored string }{
		{"in order, with what else they say", ` [ {"text": "a<b", "page": 1.50}, {"text":""} ] `, `[{"text":"a<b","page":1.50},{"text":""}]`},
		{"none", `[]`, `[]`},
		{"an object", `{"text":"a"}`, ""},
		{"a string", `"text"`, ""},
		{"an array of strings", `["a"]`, ""},
		{"a passage without a text", `[{"text":"a"},{"page":1}]`, ""},
		{"a text that is a number", `[{"text":1}]`, ""},
		{"null", `null`, ""},
		{"no comma", `[{"text":"a"} {"text":"b"}]`, ""},
		{"a comma too many", `[{"text":"a"},]`, ""},
		{"cut off", `[{"text":"a"}`, ""},
		{"more behind it", `[{"text":"a"}] []`, ""},
		{"a key twice", `[{"text":"a","text":"b"}]`, ""},
		{"no UTF-8", "[{\"text\":\"\xff\"}]", ""},
		{"nothing", ``, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := f.PutPassages(context.Background(), "u", strings.NewReader(`[{"text":"before"}]`)); err != nil {
				t.Fatal(err)
			}
			_, err := f.PutPassages(context.Background(), "u", strings.NewReader(c.body))
			want := c.stored
			if want == "" {
				want = `[{"text":"before"}]`
				if code(err) != call.InvalidArguments {
					t.Errorf("error %v, want %s", err, call.InvalidArguments)
				}
			} else if err != nil {
				t.Error(err)
			}
			r, _ := f.open("u", []string{"u"}, []string{})
			if got := f.bytes(*r.PassagesID, *r.PassagesBytes); got != want {
				t.Errorf("stored %s, want %s", got, want)
			}
		})
	}
	if inUse, _ := f.contents(); inUse != 2 {
		t.Errorf("%d contents in use, want the upload's and its passages'", inUse)
	}
}

func TestPassagesBelongToBytes(t *testing.T) {
	f := newFixture(t)
	f.put("u", "c", "doc", "one")
	if n, err := f.PutPassages(context.Background(), "u", strings.NewReader(`[{"text":"1"},{"text":"2"}]`)); n != 2 || err != nil {
		t.Fatal(n, err)
	}
	f.put("u", "c", "doc renamed", "one")
	if r, _ := f.open("u", []string{"u"}, []string{}); r.PassagesID == nil {
		t.Error("the same bytes have lost their passages")
	}
	f.put("u", "c", "doc", "two")
	if r, _ := f.open("u", []string{"u"}, []string{}); r.PassagesID != nil {
		t.Error("other bytes have the passages of the old ones")
	}
}

func TestPassagesOfNoUpload(t *testing.T) {
	f := newFixture(t)
	if _, err := f.PutPassages(context.Background(), "none", strings.NewReader(`[]`)); !errors.Is(err, store.ErrAbsent) {
		t.Errorf("error %v", err)
	}
}

func TestContentThatIsDueIsSwept(t *testing.T) {
	f := newFixture(t)
	f.put("u", "c", "a", "1")
	f.put("u", "c", "a", "2")
	if _, err := f.db.Pool.Exec(context.Background(), "UPDATE contents SET due_at = due_at - interval '2 hours' WHERE due_at IS NOT NULL"); err != nil {
		t.Fatal(err)
	}
	f.put("v", "c", "b", "3")
	if inUse, due := f.contents(); inUse != 2 || due != 0 {
		t.Errorf("%d contents in use and %d due, want 2 and none", inUse, due)
	}
}
