package devtest_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"treeline/internal/devenv/devtest"
)

func TestMain(m *testing.M) { devtest.Main(m) }

func notes(ctx context.Context, url string) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	_, err = conn.Exec(ctx, "CREATE TABLE notes (text text)")
	return err
}

func count(t *testing.T, pool *pgxpool.Pool, query string) int {
	t.Helper()
	var n int
	if err := pool.QueryRow(t.Context(), query).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestEachTestHasADatabaseOfItsOwnThatIsMigrated(t *testing.T) {
	for _, name := range []string{"first", "second", "third"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			begin := time.Now()
			db := devtest.Postgres(t, notes)
			t.Logf("made in %s", time.Since(begin))
			if _, err := db.Pool.Exec(t.Context(), "INSERT INTO notes VALUES ($1)", name); err != nil {
				t.Fatal(err)
			}
			if n := count(t, db.Pool, "SELECT count(*) FROM notes"); n != 1 {
				t.Errorf("notes: %d, want this test's 1", n)
			}
		})
	}
}

func TestADatabaseIsEmptyWithoutMigrate(t *testing.T) {
	db := devtest.Postgres(t, nil)
	if n := count(t, db.Pool, "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"); n != 0 {
		t.Errorf("tables: %d, want 0", n)
	}
}

func TestADatabaseIsDroppedThoughSomebodyIsConnected(t *testing.T) {
	var url string
	t.Run("uses one", func(t *testing.T) {
		db := devtest.Postgres(t, notes)
		url = db.URL
		if _, err := pgx.Connect(t.Context(), db.TCPURL); err != nil {
			t.Fatal(err)
		}
	})
	if conn, err := pgx.Connect(t.Context(), url); err == nil {
		t.Errorf("still there: %v", conn.Close(t.Context()))
	}
}

func TestSyncingIsAsAskedFor(t *testing.T) {
	for _, c := range []struct {
		name    string
		options []devtest.Option
		want    string
	}{
		{"by default", nil, "off"},
		{"durable", []devtest.Option{devtest.Durable()}, "on"},
	} {
		t.Run(c.name, func(t *testing.T) {
			db := devtest.Postgres(t, nil, c.options...)
			var got string
			if err := db.Pool.QueryRow(t.Context(), "SHOW fsync").Scan(&got); err != nil {
				t.Fatal(err)
			}
			if got != c.want {
				t.Errorf("fsync: %s, want %s", got, c.want)
			}
		})
	}
}

func TestAnOwnServerMayBeKilledAndKeepsWhatWasCommitted(t *testing.T) {
	server, db := devtest.OwnPostgres(t, notes)
	if _, err := db.Pool.Exec(t.Context(), "INSERT INTO notes VALUES ('kept')"); err != nil {
		t.Fatal(err)
	}
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := server.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	pool, err := pgxpool.New(t.Context(), server.TCPURL())
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	if n := count(t, pool, "SELECT count(*) FROM notes WHERE text = 'kept'"); n != 1 {
		t.Errorf("notes: %d, want 1", n)
	}
}

func TestNATSIsTheTestsOwn(t *testing.T) {
	for range 2 {
		t.Run("makes a stream", func(t *testing.T) {
			conn, err := nats.Connect(devtest.NATS(t).URL())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			js, err := jetstream.New(conn)
			if err != nil {
				t.Fatal(err)
			}
			names := js.StreamNames(t.Context())
			for name := range names.Name() {
				t.Errorf("stream %s is another test's", name)
			}
			if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "S", Subjects: []string{"s.>"}}); err != nil {
				t.Fatal(err)
			}
		})
	}
}
