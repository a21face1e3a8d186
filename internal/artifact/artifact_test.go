package artifact_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"treeline/internal/artifact"
	"treeline/internal/call"
	"treeline/internal/devenv/devtest"
	"treeline/internal/store"
	"treeline/internal/store/db"
	"treeline/internal/turn"
)

func TestMain(m *testing.M) { devtest.Main(m) }

func TestEndings(t *testing.T) {
	for _, c := range []struct {
		kind           artifact.Kind
		name           string
		ending, person string
	}{
		{artifact.Document, "Plan", ".md", "Plan.md"},
		{artifact.Document, "notes.markdown", ".md", "notes.markdown"},
		{artifact.Chart, "Sales", ".json", "Sales.json"},
		{artifact.Web, "Page", ".html", "Page.html"},
		{artifact.Text, "T", ".txt", "T.txt"},
		{artifact.File, "x.xlsx", ".xlsx", "x.xlsx"},
		{artifact.File, "a.b/x.tar.gz", ".tar.gz", "a.b/x.tar.gz"},
		{artifact.File, "no ending", "", "no ending"},
		{artifact.File, ".hidden", "", ".hidden"},
		{artifact.File, "ends in a dot.", "", "ends in a dot."},
		{artifact.File, "x.not an ending", "", "x.not an ending"},
		{artifact.File, "../../x.sh/..", "", "../../x.sh/.."},
	} {
		if got := c.kind.Ending(c.name); got != c.ending {
			t.Errorf("%s %q ends in %q, want %q", c.kind, c.name, got, c.ending)
		}
		if got := c.kind.FileName(c.name); got != c.person {
			t.Errorf("%s %q is %q to a person, want %q", c.kind, c.name, got, c.person)
		}
	}
}

func newStore(t *testing.T) (*artifact.Store, *devtest.Database) {
	t.Helper()
	d := devtest.Postgres(t, store.Migrate)
	return artifact.New(d.Pool), d
}

func TestTextIsJudgedAcrossReads(t *testing.T) {
	s, _ := newStore(t)
	put := func(id, body string) error {
		p := artifact.Put{ID: id, Kind: artifact.Text, Owner: "u", Department: "d"}
		_, _, err := s.Put(t.Context(), p, iotestReader{strings.NewReader(body)})
		return err
	}
	for i, c := range []struct {
		body string
		good bool
	}{
		{"", true}, {"aé€😀", true}, {"😀", true}, {"\xf0\x9f\x98", false}, {"a\xc3", false}, {"\x80", false}, {"é\x80", false},
		{"a\x00b", false}, {"\xed\xa0\x80", false}, {"\xc0\x80", false},
	} {
		err := put(fmt.Sprintf("ar-%d", i), c.body)
		var r *call.Refusal
		if c.good && err != nil || !c.good && (!errors.As(err, &r) || r.Code != call.InvalidArguments) {
			t.Errorf("%q: error %v", c.body, err)
		}
	}
}

// iotestReader gives one byte a read.
type iotestReader struct{ r io.Reader }

func (r iotestReader) Read(p []byte) (int, error) { return r.r.Read(p[:min(1, len(p))]) }

func TestTheOwnerIsCheckedBeforeTheBodyIsRead(t *testing.T) {
	s, _ := newStore(t)
	if _, _, err := s.Put(t.Context(), artifact.Put{ID: "ar", Kind: artifact.File, Owner: "u1", Department: "d"}, strings.NewReader("x")); err != nil {
		t.Fatal(err)
	}
	_, _, err := s.Put(t.Context(), artifact.Put{ID: "ar", Kind: artifact.File, Owner: "u2", Department: "d"}, unread{t})
	if !errors.Is(err, artifact.ErrOtherOwner) {
		t.Errorf("error %v", err)
	}
}

type unread struct{ t *testing.T }

func (u unread) Read([]byte) (int, error) {
	u.t.Error("the body is read")
	return 0, io.EOF
}

func TestPutsThatMeet(t *testing.T) {
	s, d := newStore(t)
	const n = 8
	versions := make([]int, n)
	made := make([]bool, n)
	var group sync.WaitGroup
	for i := range n {
		group.Go(func() {
			p := artifact.Put{ID: "ar", Kind: artifact.Text, Owner: "u1", Department: "d"}
			a, isNew, err := s.Put(context.Background(), p, strings.NewReader(fmt.Sprint(i)))
			if err != nil {
				t.Error(err)
			}
			versions[i], made[i] = a.Version, isNew
		})
	}
	group.Wait()
	slices.Sort(versions)
	if want := []int{1, 2, 3, 4, 5, 6, 7, 8}; !slices.Equal(versions, want) {
		t.Errorf("versions %v", versions)
	}
	if count := len(slices.DeleteFunc(made, func(b bool) bool { return !b })); count != 1 {
		t.Errorf("%d of them made it", count)
	}
	var due int
	if err := d.Pool.QueryRow(t.Context(), "SELECT count(*) FROM contents WHERE due_at IS NOT NULL").Scan(&due); err != nil || due != 0 {
		t.Errorf("%d contents are left over, error %v", due, err)
	}
}

func TestRights(t *testing.T) {
	s, d := newStore(t)
	if _, _, err := s.Put(t.Context(), artifact.Put{ID: "ar", Kind: artifact.Text, Owner: "u1", Department: "d1"}, strings.NewReader("x")); err != nil {
		t.Fatal(err)
	}
	shares := []artifact.Share{{User: "reader", Right: "read"}, {User: "writer", Right: "change"}, {Department: "readers", Right: "read"},
		{Department: "writers", Right: "change"}}
	if err := s.SetShares(t.Context(), "ar", shares); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		user, department string
		read, change     bool
	}{
		{"u1", "elsewhere", true, true},
		{"reader", "x", true, false},
		{"writer", "x", true, true},
		{"x", "readers", true, false},
		{"x", "writers", true, true},
		{"reader", "writers", true, true},
		{"u2", "d1", false, false}, // the department that pays has no right by that
		{"readers", "reader", false, false},
		{"", "", false, false},
	} {
		a, err := artifact.Open(t.Context(), db.New(d.Pool), turn.Caller{User: c.user, Department: c.department}, "ar", 0)
		if read := err == nil; read != c.read || a.MayChange != c.change {
			t.Errorf("%s of %s: reads %t, changes %t, want %t and %t (%v)", c.user, c.department, read, a.MayChange, c.read, c.change, err)
		}
	}
}

// Who waits for an artifact's lock sees it afterwards as the one who held it left it.
func TestWhoWaitsForAnArtifactFindsIt(t *testing.T) {
	s, d := newStore(t)
	put := artifact.Put{ID: "ar", Kind: artifact.Text, Owner: "u1", Department: "d"}
	if _, _, err := s.Put(t.Context(), put, strings.NewReader("1")); err != nil {
		t.Fatal(err)
	}
	holder, err := d.Pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = holder.Rollback(context.Background()) }()
	_, err = holder.Exec(t.Context(), `UPDATE artifacts SET version = 2; INSERT INTO artifact_versions
		SELECT artifact_id, 2, kind, title, name, content_id, made_by, department, bytes FROM artifact_versions`)
	if err != nil {
		t.Fatal(err)
	}
	shared, version := make(chan error, 1), make(chan int, 1)
	go func() {
		shared <- s.SetShares(context.Background(), "ar", []artifact.Share{{User: "u2", Right: artifact.RightRead}})
	}()
	go func() {
		a, _, err := s.Put(context.Background(), put, strings.NewReader("3"))
		if err != nil {
			t.Error(err)
		}
		version <- a.Version
	}()
	for waiting := 0; waiting < 2; time.Sleep(10 * time.Millisecond) {
		err := d.Pool.QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`).Scan(&waiting)
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := holder.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-shared; err != nil {
		t.Errorf("shared: %v", err)
	}
	if v := <-version; v != 3 {
		t.Errorf("put as version %d, want 3", v)
	}
}
