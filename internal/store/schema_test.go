package store_test

import (
	"errors"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"treeline/internal/devenv/devtest"
	"treeline/internal/store"
)

// sound are rows that the schema takes; each broken one differs from them by one value.
const sound = `
	INSERT INTO conversations (id) VALUES ('k1');
	INSERT INTO turns (id, conversation_id, generation, token_sha256, caller_user, department)
		VALUES ('t1', 'k1', 1, sha256('t'), 'u', 'd');
	INSERT INTO calls (turn_id, call_id, conversation_id, generation, seq, tool, kind, lane, arguments, arguments_sha256, state, result_ref)
		VALUES ('t1', 'c1', 'k1', 1, 1, 'write_file', 'w', 'file', '', sha256(''), 'released', 'r1');
	INSERT INTO blobs VALUES ('k1', sha256('a'), 0, 'a');
	INSERT INTO files (conversation_id, path, revision, sha256, bytes, kind, lines, characters, mime_type)
		VALUES ('k1', 'a', 1, sha256('a'), 1, 'text', 1, 1, 'text/plain');
	INSERT INTO changes (conversation_id, seq, path, op, after_sha256) VALUES ('k1', 1, 'a', 'created', sha256('a'));`

const (
	check  = "23514"
	unique = "23505"
	absent = "23503"
	null   = "23502"
)

func TestTheSchemaHoldsTheInvariants(t *testing.T) {
	d := devtest.Postgres(t, store.Migrate)
	if _, err := d.Pool.Exec(t.Context(), sound); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, code, sql string }{
		{"an id with other characters", check, `INSERT INTO conversations (id) VALUES ('k 1')`},
		{"an id that is too long", check, `INSERT INTO conversations (id) VALUES (repeat('k', 65))`},
		{"a call id that is empty", check, `UPDATE calls SET call_id = ''`},
		{"a count below none", check, `UPDATE conversations SET open = -1`},
		{"bytes below none", check, `UPDATE conversations SET bytes = bytes - 1`},
		{"history below none", check, `UPDATE conversations SET history_bytes = -1`},
		{"a generation of none", check, `UPDATE conversations SET generation = 0`},
		{"a deleted conversation that holds bytes", check, `UPDATE conversations SET deleted_at = now(), bytes = 1`},
		{"a deleted conversation with an open call", check, `UPDATE conversations SET deleted_at = now(), open = 1`},
		{"a state that is none", check, `UPDATE calls SET state = 'lost'`},
		{"a lane that is none", check, `UPDATE calls SET lane = 'fast'`},
		{"a hash that is too short", check, `UPDATE calls SET arguments_sha256 = 'a'`},
		{"running without a token", check, `UPDATE calls SET state = 'running', lease_until = now()`},
		{"running without a lease", check, `UPDATE calls SET state = 'running', token = gen_random_uuid()`},
		{"a token without running", check, `UPDATE calls SET token = gen_random_uuid()`},
		{"done without a status", check, `UPDATE calls SET state = 'done', finished_at = now()`},
		{"done without an end", check, `UPDATE calls SET state = 'done', status = 'ok'`},
		{"a status without an end", check, `UPDATE calls SET status = 'ok'`},
		{"ok with a code", check, `UPDATE calls SET state = 'done', status = 'ok', code = 'busy', finished_at = now()`},
		{"refused without a code", check, `UPDATE calls SET state = 'done', status = 'refused', finished_at = now()`},
		{"a status that is none", check, `UPDATE calls SET state = 'done', status = 'fine', code = 'x', finished_at = now()`},
		{"waiting without a place", check, `UPDATE calls SET seq = 0`},
		{"told nowhere", check, `UPDATE calls SET told_seq = 1`},
		{"attempts below none", check, `UPDATE calls SET attempt = -1`},
		{"a call of a turn that is not there", absent, `UPDATE calls SET turn_id = 't2'`},
		{"a call of another conversation than its turn's", absent, `INSERT INTO conversations (id) VALUES ('k2'); UPDATE calls SET conversation_id = 'k2'`},
		{"two heads", unique, `INSERT INTO calls SELECT turn_id, 'c2', conversation_id, generation, 2, tool, kind, lane, actor, arguments, arguments_sha256, paths,
			state, token, attempt, lease_until, next_at, sweeps, cancel_requested, status, code, result, output, 'r2' FROM calls`},
		{"a place given twice", unique, `INSERT INTO calls SELECT turn_id, 'c2', conversation_id, generation, seq, tool, kind, lane, actor, arguments, arguments_sha256,
			paths, 'queued', token, attempt, lease_until, next_at, sweeps, cancel_requested, status, code, result, output, 'r2' FROM calls`},
		{"an id used twice", unique, `INSERT INTO calls SELECT turn_id, call_id, conversation_id, generation, 2, tool, kind, lane, actor, arguments, arguments_sha256,
			paths, 'queued', token, attempt, lease_until, next_at, sweeps, cancel_requested, status, code, result, output, 'r2' FROM calls`},
		{"a path that is too long", check, `UPDATE files SET path = repeat('a', 513)`},
		{"no path", check, `UPDATE files SET path = ''`},
		{"a revision of none", check, `UPDATE files SET revision = 0`},
		{"a kind of file that is none", check, `UPDATE files SET kind = 'deck'`},
		{"a file of no conversation", absent, `UPDATE files SET conversation_id = 'k9'`},
		{"a piece that is too large", check, `UPDATE blobs SET data = decode(repeat('00', 1048577), 'hex')`},
		{"a piece before the first", check, `UPDATE blobs SET piece = -1`},
		{"bytes of no conversation", absent, `UPDATE blobs SET conversation_id = 'k9'`},
		{"a change that is none", check, `UPDATE changes SET op = 'touched'`},
		{"created over something", check, `UPDATE changes SET before_sha256 = sha256('b')`},
		{"modified from nothing", check, `UPDATE changes SET op = 'modified'`},
		{"deleted and still there", check, `UPDATE changes SET op = 'deleted', before_sha256 = sha256('b')`},
		{"a change without a place", check, `UPDATE changes SET seq = 0`},
		{"a hash of nothing", null, `UPDATE files SET sha256 = NULL`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := d.Pool.Exec(t.Context(), c.sql)
			var pg *pgconn.PgError
			if !errors.As(err, &pg) || pg.Code != c.code {
				t.Errorf("%s: %v, want the code %s", c.sql, err, c.code)
			}
		})
	}
}
