// Package store is Treeline's Postgres: migrations, the queries that sqlc turns into internal/store/db, the tree's
// records and the bytes of its files.
package store

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	_ "github.com/jackc/pgx/v5/stdlib" // goose speaks database/sql
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Session settings of every connection. Waiting for a conversation's lock and idling inside a transaction are bounded,
// so that no client can hold a conversation for ever. Plans are pinned to indexes: a generic plan that was made while
// calls was nearly empty would otherwise scan it for the life of the connection.
var sessionSettings = map[string]string{
	"application_name":                    "treeline",
	"lock_timeout":                        "15s",
	"statement_timeout":                   "60s",
	"idle_in_transaction_session_timeout": "30s",
	"jit":                                 "off",
	"plan_cache_mode":                     "force_generic_plan",
	"enable_seqscan":                      "off",
	"enable_hashjoin":                     "off",
	"enable_mergejoin":                    "off",
	"enable_bitmapscan":                   "off",
}

// ErrURL says that a database URL cannot be parsed. It does not show the URL, which may hold a password.
var ErrURL = errors.New("the database URL cannot be parsed: want postgres://user:password@host:port/database")

// Open connects a pool of at most max connections to the database at url. It pings once, within ctx.
func Open(ctx context.Context, url string, max int) (*pgxpool.Pool, error) {
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, ErrURL
	}
	for k, v := range sessionSettings {
		cfg.ConnConfig.RuntimeParams[k] = v
	}
	cfg.MaxConns = int32(max)
	cfg.MinConns = 1
	cfg.ConnConfig.ConnectTimeout = 5 * time.Second
	cfg.ConnConfig.DialFunc = dial
	cfg.HealthCheckPeriod = 5 * time.Second
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("open the database pool: %w", err)
	}
	if err := pool.Ping(ctx); err != nil {
		pool.Close()
		return nil, fmt.Errorf("reach the database: %w", err)
	}
	return pool, nil
}

// Migrate brings the database at url to the newest schema. Several may run at once: an advisory lock of the
// migration's own session lets one of them work.
func Migrate(ctx context.Context, url string) error {
	db, err := sql.Open("pgx", url)
	if err != nil {
		return fmt.Errorf("open the database to migrate: %w", err)
	}
	defer db.Close()
	dir, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return fmt.Errorf("read the embedded migrations: %w", err)
	}
	locker, err := lock.NewPostgresSessionLocker()
	if err != nil {
		return fmt.Errorf("make the migration lock: %w", err)
	}
	p, err := goose.NewProvider(goose.DialectPostgres, db, dir, goose.WithSessionLocker(locker))
	if err != nil {
		return fmt.Errorf("read the migrations: %w", err)
	}
	if _, err := p.Up(ctx); err != nil {
		return fmt.Errorf("migrate the database: %w", err)
	}
	return nil
}
