package devenv

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

const (
	dataName      = "data"
	logName       = "server.log"
	databaseName  = "treeline" // and the role that owns it
	superuserName = "postgres"
	socketPort    = 5432     // where the server listens on its socket only
	largestLog    = 16 << 20 // bytes; a larger log is set aside at the next start
)

// secrets are the passwords of a private server.
type secrets struct{ superuser, owner string }

// cluster is the database of a private server on disk, and the programs and account that run it. The folder around it
// belongs to this process's user; the server's account owns the data folder and the socket's alone.
type cluster struct {
	folder   *Folder
	data     string
	who      account
	programs Binaries
	noSync   bool
}

// madeBy gives the major version that made a data folder, 0 where there is none.
func madeBy(data string) (int, error) {
	content, err := os.ReadFile(filepath.Join(data, "PG_VERSION"))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("reading the database's version: %w", err)
	}
	major, err := strconv.Atoi(strings.TrimSpace(string(content)))
	if err != nil {
		return 0, fmt.Errorf("reading the database's version: %w", err)
	}
	return major, nil
}

// prepare brings the cluster to where a server can start on it.
func (c cluster) prepare(ctx context.Context, exists bool) (secrets, error) {
	if exists {
		if err := stopLeftover(ctx, c.data); err != nil {
			return secrets{}, err
		}
		if err := c.checkOwner(); err != nil {
			return secrets{}, err
		}
	}
	s, err := c.secrets(exists)
	if err != nil || exists {
		return s, err
	}
	return s, c.initialise(ctx, s)
}

func (c cluster) checkOwner() error {
	info, err := os.Stat(c.data)
	if err != nil {
		return err
	}
	if owner := info.Sys().(*syscall.Stat_t).Uid; owner != c.who.uid {
		return fmt.Errorf("the database in %s belongs to user %d and the server would run as user %d", c.data, owner, c.who.uid)
	}
	return nil
}

// secrets are made with the database: one whose passwords are lost cannot be opened with new ones.
func (c cluster) secrets(exists bool) (secrets, error) {
	read := c.folder.Secret
	if exists {
		read = func(name string) (string, error) { return readSecret(c.folder.Join(name)) }
	}
	superuser, err := read("superuser-password")
	if err != nil {
		return secrets{}, err
	}
	owner, err := read("password")
	return secrets{superuser: superuser, owner: owner}, err
}

// initialise makes the database under another name and then renames it: one that is there is whole.
func (c cluster) initialise(ctx context.Context, s secrets) error {
	if err := c.removeUnfinished(); err != nil {
		return err
	}
	work, err := os.MkdirTemp(c.folder.Path(), unfinished)
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(work) }()
	data, password := filepath.Join(work, dataName), filepath.Join(work, "password")
	err = errors.Join(os.Chmod(work, folderMode()), os.Mkdir(data, 0o700), c.who.own(data),
		os.WriteFile(password, []byte(s.superuser+"\n"), secretMode), c.who.own(password))
	if err != nil {
		return err
	}
	if err := c.initdb(ctx, "--pgdata", data, "--no-sync", "--username", superuserName, "--pwfile", password,
		"--auth", "scram-sha-256", "--encoding", "UTF8", "--locale", "C", "--no-instructions"); err != nil {
		return err
	}
	if !c.noSync {
		if err := c.initdb(ctx, "--pgdata", data, "--sync-only"); err != nil {
			return err
		}
	}
	return os.Rename(data, c.data)
}

const unfinished = "initdb-*"

// removeUnfinished removes what a process that was killed midway has left.
func (c cluster) removeUnfinished() error {
	left, err := filepath.Glob(c.folder.Join(unfinished))
	for _, path := range left {
		err = errors.Join(err, os.RemoveAll(path))
	}
	return err
}

func (c cluster) initdb(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, c.programs.program("initdb"), args...)
	cmd.Dir, cmd.Env, cmd.SysProcAttr = "/", serverEnvironment(), c.who.attributes()
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("making the database: %w: %s", err, strings.TrimSpace(string(out)))
	}
	return nil
}

// serverOptions are what differs between one start and the next.
type serverOptions struct {
	socket      string
	tcp         bool
	port        int
	connections int
}

// settings are given at each start rather than kept in the database's own files, so that this code is the one place.
func (c cluster) settings(o serverOptions) []string {
	listen := ""
	if o.tcp {
		listen = "127.0.0.1"
	}
	durable := "on"
	if c.noSync {
		durable = "off"
	}
	settings := []string{
		ourMark,
		"listen_addresses=" + listen,
		"port=" + strconv.Itoa(o.port),
		"unix_socket_directories=" + o.socket,
		"unix_socket_permissions=0777", // the folder and the password decide
		"password_encryption=scram-sha-256",
		"fsync=" + durable,
		"full_page_writes=" + durable,
		"synchronous_commit=on",
		"shared_buffers=128MB",
		"max_connections=" + strconv.Itoa(o.connections),
		"idle_in_transaction_session_timeout=60s", // a client that hangs midway does not hold a conversation for ever
		"jit=off", // compiling costs more than such short statements gain
		"log_destination=stderr",
		"logging_collector=off",
		// Clients are told their own errors. The log has what no client sees, and never a statement or a value.
		"log_min_messages=log",
		"log_min_error_statement=panic",
		"log_error_verbosity=terse",
		"log_checkpoints=off",
		"log_timezone=UTC",
		"timezone=UTC",
	}
	args := []string{"-D", c.data}
	for _, setting := range settings {
		args = append(args, "-c", setting)
	}
	return args
}

func (c cluster) run(o serverOptions) (*process, error) {
	log, err := c.openLog()
	if err != nil {
		return nil, fmt.Errorf("opening the server's log: %w", err)
	}
	defer func() { _ = log.Close() }()
	cmd := exec.Command(c.programs.program("postgres"), c.settings(o)...)
	cmd.Dir, cmd.Env, cmd.SysProcAttr = c.data, serverEnvironment(), c.who.attributes()
	dieWithParent(cmd.SysProcAttr)
	cmd.Stdout, cmd.Stderr = log, log
	return startProcess(cmd)
}

func (c cluster) openLog() (*os.File, error) {
	path := c.folder.Join(logName)
	if info, err := os.Stat(path); err == nil && info.Size() > largestLog {
		if err := os.Rename(path, path+".old"); err != nil {
			return nil, err
		}
	}
	return os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND|syscall.O_NOFOLLOW, secretMode)
}

// errPortTaken is a start that failed since another program listens on the port.
var errPortTaken = errors.New("the port is taken")

// errMemoryHeld is a start that failed since the shared memory of the server before it is not free yet.
var errMemoryHeld = errors.New("the shared memory of an earlier server is still in use")

// ready waits until the server answers. Where it ends first, the error has the last lines of its log.
func (c cluster) ready(ctx context.Context, server *process, superuserURL string) error {
	for {
		conn, err := pgx.Connect(ctx, superuserURL)
		if err == nil {
			return conn.Close(ctx)
		}
		if answer := new(pgconn.PgError); errors.As(err, &answer) && answer.Code != "57P03" { // cannot_connect_now: it recovers
			return fmt.Errorf("the server does not take its own password: %w", err)
		}
		select {
		case <-server.done:
			last := c.lastLines()
			if strings.Contains(last, "could not create any TCP/IP sockets") {
				return fmt.Errorf("%w: %s", errPortTaken, last)
			}
			if strings.Contains(last, "pre-existing shared memory block") {
				return fmt.Errorf("%w: %s", errMemoryHeld, last)
			}
			return fmt.Errorf("the server ended (%v): %s", server.err, last)
		case <-ctx.Done():
			return fmt.Errorf("the server is not ready (%w): %w: %s", ctx.Err(), err, c.lastLines())
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func (c cluster) lastLines() string {
	file, err := os.Open(c.folder.Join(logName))
	if err != nil {
		return "it has left no log"
	}
	defer func() { _ = file.Close() }()
	const most = 2000
	if info, err := file.Stat(); err == nil && info.Size() > most {
		if _, err := file.Seek(-most, io.SeekEnd); err != nil {
			return "its log cannot be read"
		}
	}
	text, err := io.ReadAll(io.LimitReader(file, most))
	if err != nil {
		return "its log cannot be read"
	}
	return strings.TrimSpace(string(text))
}

// makeDatabase makes the role and its database where they are missing: an earlier start may have been killed between.
func (c cluster) makeDatabase(ctx context.Context, superuserURL string, s secrets) error {
	conn, err := pgx.Connect(ctx, superuserURL)
	if err != nil {
		return fmt.Errorf("making the database %s: %w", databaseName, err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	for _, step := range []struct{ exists, create string }{
		// The password is 43 letters, digits, "-" and "_" of our own making.
		{`SELECT FROM pg_roles WHERE rolname = $1`, `CREATE ROLE ` + databaseName + ` LOGIN CREATEDB PASSWORD '` + s.owner + `'`},
		{`SELECT FROM pg_database WHERE datname = $1`, `CREATE DATABASE ` + databaseName + ` OWNER ` + databaseName},
	} {
		found, err := conn.Exec(ctx, step.exists, databaseName)
		if err == nil && found.RowsAffected() == 0 {
			_, err = conn.Exec(ctx, step.create)
		}
		if err != nil {
			return fmt.Errorf("making the database %s: %w", databaseName, err)
		}
	}
	return nil
}
