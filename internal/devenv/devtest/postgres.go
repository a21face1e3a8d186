package devtest

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"treeline/internal/devenv"
)

// Migrate brings an empty database to the present schema.
type Migrate func(ctx context.Context, url string) error

// Database is a database of the test's own on a server that other tests use too.
type Database struct {
	// URL connects over the unix socket, TCPURL over TCP, as needed by tests that put a proxy between. Each holds a
	// password.
	URL, TCPURL string
	// Pool is closed at the end of the test.
	Pool *pgxpool.Pool
}

// Option says what a test needs of the server.
type Option func(*kind)

// Durable has every commit reach the disk, as in production: for tests and benchmarks of time. (A server that is killed
// loses nothing either way.)
func Durable() Option { return func(k *kind) { k.durable = true } }

// kind tells the shared servers of a test process apart.
type kind struct{ durable bool }

// Postgres makes a database for the test as a copy of one on which migrate has run once in this process. Migrate is to
// be a plain function, by which the copied database is known, or nil for an empty database. The database is dropped at
// the end of the test, whoever is still connected.
func Postgres(t testing.TB, migrate Migrate, options ...Option) *Database {
	t.Helper()
	if shared == nil {
		t.Fatal("tests with a database need: func TestMain(m *testing.M) { devtest.Main(m) }")
	}
	var k kind
	for _, option := range options {
		option(&k)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	s, err := shared.get(ctx, k)
	if err != nil {
		t.Fatal(err)
	}
	database, err := s.database(ctx, migrate)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.drop(context.Background(), database); err != nil {
			t.Error(err)
		}
	})
	return database
}

// OwnPostgres is a server of the test's own, which the test may stop, restart and kill, with its database migrated. It
// listens on TCP too. The pool does not survive the server.
func OwnPostgres(t testing.TB, migrate Migrate) (*devenv.Postgres, *Database) {
	t.Helper()
	postgres := devenv.NewPostgres(devenv.PostgresConfig{Folder: filepath.Join(Folder(t), "postgres"), TCP: true})
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	t.Cleanup(func() {
		if err := postgres.Stop(); err != nil {
			t.Error(err)
		}
	})
	if err := postgres.Start(ctx); err != nil {
		t.Fatal(err)
	}
	if migrate != nil {
		if err := migrate(ctx, postgres.URL()); err != nil {
			t.Fatalf("migrating: %v", err)
		}
	}
	pool, err := pgxpool.New(ctx, postgres.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return postgres, &Database{URL: postgres.URL(), TCPURL: postgres.TCPURL(), Pool: pool}
}

// servers are started one by one as tests first ask for them.
type servers struct {
	parent string // holds a folder for each test process

	mu     sync.Mutex
	folder *devenv.Folder // this process's, which being open tells others that the process lives
	byKind map[kind]*server
}

func (s *servers) get(ctx context.Context, k kind) (*server, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if running, ok := s.byKind[k]; ok {
		return running, nil
	}
	if s.folder == nil {
		var err error
		if s.folder, err = openProcessFolder(ctx, s.parent); err != nil {
			return nil, fmt.Errorf("making a folder for test databases: %w", err)
		}
	}
	name := "fast"
	if k.durable {
		name = "durable"
	}
	postgres := devenv.NewPostgres(devenv.PostgresConfig{Folder: s.folder.Join(name), TCP: true, NoSync: !k.durable})
	if err := postgres.Start(ctx); err != nil {
		return nil, err
	}
	started := &server{postgres: postgres, templates: map[uintptr]string{}}
	s.byKind[k] = started
	return started, nil
}

// openProcessFolder has test processes take turns, so that none sweeps away what another has just made.
func openProcessFolder(ctx context.Context, path string) (*devenv.Folder, error) {
	parent, err := devenv.OpenFolder(path)
	for inUse(err) {
		select {
		case <-ctx.Done():
			return nil, errors.Join(err, ctx.Err())
		case <-time.After(10 * time.Millisecond):
		}
		parent, err = devenv.OpenFolder(path)
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = parent.Close() }()
	if err := sweep(ctx, path); err != nil {
		return nil, fmt.Errorf("removing what killed tests have left: %w", err)
	}
	folder, err := newFolder(path, folderPattern)
	if err != nil {
		return nil, err
	}
	return devenv.OpenFolder(folder)
}

func (s *servers) stop() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var err error
	for _, running := range s.byKind {
		err = errors.Join(err, running.postgres.Stop())
	}
	if s.folder == nil {
		return err
	}
	return errors.Join(err, os.RemoveAll(s.folder.Path()), s.folder.Close())
}

// server is one that tests share.
type server struct {
	postgres *devenv.Postgres

	mu        sync.Mutex
	made      int
	templates map[uintptr]string // the migrated database by its migrate function's address
}

func (s *server) database(ctx context.Context, migrate Migrate) (*Database, error) {
	name, err := s.copy(ctx, migrate)
	if err != nil {
		return nil, fmt.Errorf("making a test database: %w", err)
	}
	made := &Database{URL: named(s.postgres.URL(), name), TCPURL: named(s.postgres.TCPURL(), name)}
	if made.Pool, err = pgxpool.New(ctx, made.URL); err != nil {
		return nil, fmt.Errorf("making a test database: %w", err)
	}
	return made, nil
}

// copy is under the lock as a whole: a database that is being copied may have no other connection.
func (s *server) copy(ctx context.Context, migrate Migrate) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	template, err := s.template(ctx, migrate)
	if err != nil {
		return "", err
	}
	s.made++
	name := fmt.Sprintf("test_%d", s.made)
	return name, s.run(ctx, "CREATE DATABASE "+name+" TEMPLATE "+template)
}

func (s *server) template(ctx context.Context, migrate Migrate) (string, error) {
	if migrate == nil {
		return "template0", nil
	}
	key := reflect.ValueOf(migrate).Pointer()
	if name, ok := s.templates[key]; ok {
		return name, nil
	}
	name := fmt.Sprintf("migrated_%d", len(s.templates)+1)
	if err := s.run(ctx, "DROP DATABASE IF EXISTS "+name, "CREATE DATABASE "+name); err != nil {
		return "", err
	}
	if err := migrate(ctx, named(s.postgres.URL(), name)); err != nil {
		return "", fmt.Errorf("migrating: %w", err)
	}
	s.templates[key] = name
	return name, nil
}

func (s *server) drop(ctx context.Context, database *Database) error {
	database.Pool.Close()
	parsed, err := url.Parse(database.URL)
	if err != nil {
		return err
	}
	return s.run(ctx, "DROP DATABASE IF EXISTS "+parsed.Path[1:]+" WITH (FORCE)")
}

func (s *server) run(ctx context.Context, statements ...string) error {
	conn, err := pgx.Connect(ctx, s.postgres.URL())
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	for _, statement := range statements {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	return nil
}

// named is the URL of another database of the same server.
func named(address, database string) string {
	parsed, err := url.Parse(address)
	if err != nil {
		return ""
	}
	parsed.Path = "/" + database
	return parsed.String()
}
