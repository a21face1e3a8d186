package devenv

import (
	"context"
	"errors"
	"net"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

func TestAPrivateServer(t *testing.T) {
	postgres := started(t, PostgresConfig{TCP: true})
	folder := postgres.cfg.Folder

	for _, c := range []struct{ name, query, want string }{
		{"encoding", "SHOW server_encoding", "UTF8"},
		{"order of text", "SELECT datcollate FROM pg_database WHERE datname = current_database()", "C"},
		{"commit", "SHOW synchronous_commit", "on"},
		{"buffers", "SHOW shared_buffers", "128MB"},
		{"connections", "SHOW max_connections", "200"},
		{"idle transactions", "SHOW idle_in_transaction_session_timeout", "1min"},
		{"lock timeout is the client's", "SHOW lock_timeout", "0"},
		{"listens on loopback alone", "SHOW listen_addresses", "127.0.0.1"},
		{"role", "SELECT current_user || '@' || current_database()", "treeline@treeline"},
		{"no superuser", "SELECT rolsuper::text FROM pg_roles WHERE rolname = current_user", "false"},
		{"owns its database", "SELECT pg_get_userbyid(datdba)::text FROM pg_database WHERE datname = current_database()", "treeline"},
	} {
		if got := value(t, postgres.URL(), c.query); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
	if got := value(t, postgres.TCPURL(), "SELECT host(inet_server_addr())"); got != "127.0.0.1" {
		t.Errorf("over TCP from %s", got)
	}
	if got := value(t, postgres.SuperuserURL(), "SELECT rolsuper::text FROM pg_roles WHERE rolname = current_user"); got != "true" {
		t.Errorf("the superuser is none")
	}

	t.Run("is not for whoever has no password", func(t *testing.T) {
		for _, address := range []string{postgres.URL(), postgres.TCPURL(), postgres.SuperuserURL()} {
			guess, err := url.Parse(address)
			if err != nil {
				t.Fatal(err)
			}
			guess.User = url.UserPassword(guess.User.Username(), "guess")
			var refused *pgconn.PgError
			if _, err := pgx.Connect(t.Context(), guess.String()); !errors.As(err, &refused) || refused.Code != "28P01" {
				t.Errorf("%v, want the password refused", err)
			}
		}
	})
	t.Run("keeps its files private", func(t *testing.T) {
		for name, want := range map[string]os.FileMode{
			".": folderMode(), "data": 0o700, "socket": folderMode(), "password": 0o600, "superuser-password": 0o600, "server.log": 0o600,
		} {
			info, err := os.Stat(filepath.Join(folder, name))
			if err != nil {
				t.Fatal(err)
			}
			if got := info.Mode().Perm(); got != want {
				t.Errorf("%s: mode %04o, want %04o", name, got, want)
			}
		}
	})
	t.Run("does not run as root", func(t *testing.T) {
		who, err := serverAccount("")
		if err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat("/proc/" + strconv.Itoa(postgres.process.cmd.Process.Pid))
		if err != nil {
			t.Fatal(err)
		}
		if uid := info.Sys().(*syscall.Stat_t).Uid; uid == 0 || uid != who.uid {
			t.Errorf("uid %d, want %d", uid, who.uid)
		}
	})
	t.Run("logs no statement and no value", func(t *testing.T) {
		conn, err := pgx.Connect(t.Context(), postgres.URL())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close(context.Background()) }()
		if _, err := conn.Exec(t.Context(), "SELECT 1/0 AS mysecret"); err == nil {
			t.Error("no error")
		}
		log, err := os.ReadFile(filepath.Join(folder, "server.log"))
		if err != nil {
			t.Fatal(err)
		}
		for _, secret := range []string{"mysecret", postgres.secrets.owner, postgres.secrets.superuser} {
			if strings.Contains(string(log), secret) {
				t.Errorf("the log has %q", secret)
			}
		}
	})
	t.Run("is one for a folder", func(t *testing.T) {
		var inUse *FolderInUseError
		err := NewPostgres(PostgresConfig{Folder: folder}).Start(t.Context())
		if !errors.As(err, &inUse) || inUse.PID != os.Getpid() {
			t.Errorf("%v, want the folder in use by %d", err, os.Getpid())
		}
	})
	t.Run("restarts on the same port with what was committed", func(t *testing.T) {
		address := postgres.Addr()
		execute(t, postgres.URL(), "CREATE TABLE kept (v text)", "INSERT INTO kept VALUES ('restart')")
		if err := postgres.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		if postgres.Addr() != address {
			t.Errorf("address: %s, want %s", postgres.Addr(), address)
		}
		if got := value(t, postgres.TCPURL(), "SELECT v FROM kept"); got != "restart" {
			t.Errorf("kept: %q", got)
		}
	})
	t.Run("recovers when it and its backends are killed", func(t *testing.T) {
		conn, err := pgx.Connect(t.Context(), postgres.URL())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close(context.Background()) }()
		execute(t, postgres.URL(), "UPDATE kept SET v = 'kill'")
		done := postgres.Done()
		if err := postgres.Kill(); err != nil {
			t.Fatal(err)
		}
		<-done
		if left, err := serversOf(filepath.Join(folder, "data")); err != nil || len(left) != 0 {
			t.Errorf("left running: %v, %v", left, err)
		}
		if err := postgres.Err(); err != nil {
			t.Errorf("%v, though it was asked for", err)
		}
		if err := postgres.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := value(t, postgres.URL(), "SELECT v FROM kept"); got != "kill" {
			t.Errorf("kept: %q", got)
		}
	})
	t.Run("tells that it ended by itself, and starts again", func(t *testing.T) {
		done := postgres.Done()
		if err := syscall.Kill(postgres.process.cmd.Process.Pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		<-done
		wantError(t, postgres.Err(), "ended by itself: signal: killed")
		if err := postgres.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := postgres.Err(); err != nil {
			t.Error(err)
		}
		if got := value(t, postgres.URL(), "SELECT v FROM kept"); got != "kill" {
			t.Errorf("kept: %q", got)
		}
	})
	t.Run("starts though the stale pid file names a living process", func(t *testing.T) {
		if err := postgres.Stop(); err != nil {
			t.Fatal(err)
		}
		who, err := serverAccount("")
		if err != nil {
			t.Fatal(err)
		}
		sleeper := exec.Command("sleep", "600")
		sleeper.SysProcAttr = who.attributes()
		if err := sleeper.Start(); err != nil {
			t.Fatal(err)
		}
		defer func() { _, _ = sleeper.Process.Kill(), sleeper.Wait() }()
		pidFile := filepath.Join(folder, "data", "postmaster.pid")
		content := strconv.Itoa(sleeper.Process.Pid) + "\n" + filepath.Join(folder, "data") + "\n1\n5432\n\n\n  1 1\n"
		if err := errors.Join(os.WriteFile(pidFile, []byte(content), 0o600), who.own(pidFile)); err != nil {
			t.Fatal(err)
		}
		if err := postgres.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("is nothing once stopped", func(t *testing.T) {
		if err := errors.Join(postgres.Stop(), postgres.Stop(), postgres.Err()); err != nil {
			t.Fatal(err)
		}
		<-postgres.Done()
	})
}

func TestAServerThatWasNeverStarted(t *testing.T) {
	postgres := NewPostgres(PostgresConfig{Folder: t.TempDir()})
	if err := errors.Join(postgres.Stop(), postgres.Kill(), postgres.Err()); err != nil {
		t.Error(err)
	}
	<-postgres.Done()
	if got := postgres.URL() + postgres.TCPURL() + postgres.SuperuserURL() + postgres.Addr(); got != "" {
		t.Errorf("addresses: %s", got)
	}
}

func TestAServerEndsWithItsParent(t *testing.T) {
	folder := filepath.Join(openFolder(t), "postgres")
	other := holder(t, folder)
	var inUse *FolderInUseError
	if err := NewPostgres(PostgresConfig{Folder: folder}).Start(t.Context()); !errors.As(err, &inUse) || inUse.PID != other.Process.Pid {
		t.Errorf("%v, want the folder in use by %d", err, other.Process.Pid)
	}
	if err := StopLeftover(t.Context(), folder); !errors.As(err, &inUse) {
		t.Errorf("%v, want what is not left over left alone", err)
	}
	if servers, err := serversOf(filepath.Join(folder, "data")); err != nil || len(servers) == 0 {
		t.Fatalf("servers: %v, %v", servers, err)
	}
	if err := other.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the server ends after its parent was killed", func() bool {
		servers, err := serversOf(filepath.Join(folder, "data"))
		return err == nil && len(servers) == 0
	})
}

func TestAStartRightAfterTheParentWasKilled(t *testing.T) {
	folder := filepath.Join(openFolder(t), "postgres")
	other := holder(t, folder)
	if err := other.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = other.Wait()
	postgres := started(t, PostgresConfig{Folder: folder})
	if got := value(t, postgres.URL(), "SELECT current_user::text"); got != "treeline" {
		t.Errorf("user: %s", got)
	}
}

// orphan is a server on the folder that is nobody's child to stop.
func orphan(t *testing.T, folder string, settings ...string) *exec.Cmd {
	t.Helper()
	who, err := serverAccount("")
	if err != nil {
		t.Fatal(err)
	}
	found, err := FindPostgres(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(folder, "data")
	args := []string{"-D", data, "-c", "listen_addresses=", "-c", "unix_socket_directories=" + filepath.Join(folder, "socket")}
	cmd := exec.Command(found.program("postgres"), append(args, settings...)...)
	cmd.Dir, cmd.Env, cmd.SysProcAttr = data, serverEnvironment(), who.attributes()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	t.Cleanup(func() { _ = cmd.Process.Signal(syscall.SIGQUIT); <-ended })
	eventually(t, "the other server runs", func() bool {
		content, err := os.ReadFile(filepath.Join(data, "postmaster.pid"))
		return err == nil && strings.Contains(string(content), "ready")
	})
	return cmd
}

func TestALivingServerOnTheFolder(t *testing.T) {
	postgres := started(t, PostgresConfig{})
	if err := postgres.Stop(); err != nil {
		t.Fatal(err)
	}
	t.Run("of ours that outlived its parent is stopped", func(t *testing.T) {
		left := orphan(t, postgres.cfg.Folder, "-c", ourMark)
		if err := postgres.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		if postgres.process.cmd.Process.Pid == left.Process.Pid {
			t.Error("still the earlier one")
		}
		if err := postgres.Stop(); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("of somebody else is left alone", func(t *testing.T) {
		theirs := orphan(t, postgres.cfg.Folder)
		var foreign *ForeignServerError
		if err := postgres.Start(t.Context()); !errors.As(err, &foreign) {
			t.Fatalf("%v, want a ForeignServerError", err)
		}
		if err := theirs.Process.Signal(syscall.Signal(0)); err != nil {
			t.Errorf("theirs: %v", err)
		}
	})
}

func TestBackendsThatOutliveTheirServerAreStopped(t *testing.T) {
	postgres := started(t, PostgresConfig{})
	conn, err := pgx.Connect(t.Context(), postgres.SuperuserURL())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	// A backend that does not notice the server's death: held still.
	backend := int(conn.PgConn().PID())
	if err := errors.Join(syscall.Kill(backend, syscall.SIGSTOP), syscall.Kill(postgres.process.cmd.Process.Pid, syscall.SIGKILL)); err != nil {
		t.Fatal(err)
	}
	<-postgres.Done()
	ctx, cancel := context.WithTimeout(t.Context(), 45*time.Second)
	defer cancel()
	if err := postgres.Start(ctx); err != nil {
		t.Fatal(err)
	}
	servers, err := serversOf(filepath.Join(postgres.cfg.Folder, "data"))
	if err != nil {
		t.Fatal(err)
	}
	for _, server := range servers {
		if server.pid == backend {
			t.Error("the backend is still there")
		}
	}
}

func TestAFolderWithALongPathHasItsSocketElsewhere(t *testing.T) {
	folder := filepath.Join(openFolder(t), strings.Repeat("long-", 30), "postgres")
	postgres := started(t, PostgresConfig{Folder: folder})
	if got := value(t, postgres.URL(), "SELECT 'reached'"); got != "reached" {
		t.Error(got)
	}
	socket := postgres.socket
	if !strings.HasPrefix(socket, "/tmp/treeline-") {
		t.Errorf("socket folder: %s", socket)
	}
	if err := postgres.Stop(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(socket); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is left behind (%v)", socket, err)
	}
}

func TestAPortThatIsTaken(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	folder := filepath.Join(openFolder(t), "postgres")
	postgres := NewPostgres(PostgresConfig{Folder: folder, TCP: true, Port: listener.Addr().(*net.TCPAddr).Port, NoSync: true})
	if err := postgres.Start(t.Context()); !errors.Is(err, errPortTaken) {
		t.Errorf("%v, want the port taken", err)
	}
	// What it made and held is given up: another may start there.
	started(t, PostgresConfig{Folder: folder, TCP: true})
}

func TestAStartThatIsGivenUpLeavesNothingRunning(t *testing.T) {
	folder := filepath.Join(openFolder(t), "postgres")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := NewPostgres(PostgresConfig{Folder: folder, NoSync: true}).Start(ctx); !errors.Is(err, context.Canceled) {
		t.Fatalf("%v, want it cancelled", err)
	}
	if _, err := os.Stat(filepath.Join(folder, "data")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("half a database is left (%v)", err)
	}
	if err := errors.Join(os.Mkdir(filepath.Join(folder, "initdb-1"), 0o700)); err != nil {
		t.Fatal(err)
	}
	started(t, PostgresConfig{Folder: folder})
	if left, _ := filepath.Glob(filepath.Join(folder, "initdb-*")); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestWhatCannotStartSaysWhy(t *testing.T) {
	nowhere := "http://127.0.0.1:1" // a repository that does not answer
	for _, c := range []struct {
		name string
		make func(t *testing.T, folder string)
		cfg  PostgresConfig
		err  []string
	}{
		{name: "a database of another version", make: func(t *testing.T, folder string) {
			data := filepath.Join(folder, "data")
			if err := errors.Join(os.Mkdir(folder, folderMode()), os.Mkdir(data, 0o700), os.WriteFile(filepath.Join(data, "PG_VERSION"), []byte("16\n"), 0o600)); err != nil {
				t.Fatal(err)
			}
		}, cfg: PostgresConfig{FetchFrom: nowhere}, err: []string{"PostgreSQL 16, which made this data folder,", "Install the package"}},
		{name: "no programs where they are said to be", cfg: PostgresConfig{Bin: "/nowhere"}, err: []string{"TREELINE_POSTGRES_BIN", "/nowhere: no such file"}},
		{name: "a folder that cannot be made", make: func(t *testing.T, folder string) {
			if err := os.WriteFile(folder, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}, err: []string{"is not a folder"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.cfg.Folder, c.cfg.Cache = filepath.Join(openFolder(t), "postgres"), openFolder(t)
			if c.make != nil {
				c.make(t, c.cfg.Folder)
			}
			wantError(t, NewPostgres(c.cfg).Start(t.Context()), append(c.err, "starting the private PostgreSQL server")...)
		})
	}
}

// As root the server runs as whom one asks for; an ordinary user's server is always the user's own.
func TestTheUserAskedFor(t *testing.T) {
	asked, err := user.Lookup("nobody")
	if err != nil {
		t.Fatal(err)
	}
	want := asked.Uid
	if os.Geteuid() != 0 {
		want = strconv.Itoa(os.Geteuid())
	}
	postgres := started(t, PostgresConfig{User: "nobody"})
	info, err := os.Stat(filepath.Join(postgres.cfg.Folder, "data", "postmaster.pid"))
	if err != nil {
		t.Fatal(err)
	}
	if got := strconv.Itoa(int(info.Sys().(*syscall.Stat_t).Uid)); got != want {
		t.Errorf("runs as uid %s, want %s", got, want)
	}
	t.Run("and that does not exist", func(t *testing.T) {
		_, err := serverAccount("no-such-user")
		if os.Geteuid() == 0 {
			wantError(t, err, `none of the users ["no-such-user"] exists`)
		} else if err != nil {
			t.Error(err)
		}
	})
}
