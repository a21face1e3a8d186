package devenv

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/rs/zerolog"
)

// PostgresConfig says which server to run. Only Folder is needed.
type PostgresConfig struct {
	// Folder is the server's own: it holds the database, the passwords (0600), the socket and server.log.
	Folder string
	// TCP also listens on 127.0.0.1; the unix socket is always there.
	TCP bool
	// Port for TCP; 0 has the system choose one, which is kept while this Postgres lives.
	Port int
	// NoSync lets the operating system choose when bytes reach the disk. A killed server loses nothing, a crashed machine
	// may lose everything: for tests of logic only.
	NoSync bool
	// Connections is the most there may be at once (default 200).
	Connections int
	// StartTimeout bounds the wait for a server that recovers from a crash (default 60 s).
	StartTimeout time.Duration
	// StopTimeout bounds an orderly stop; then clients are cut off (default 10 s).
	StopTimeout time.Duration
	// Bin is the folder of the programs postgres and initdb (default: TREELINE_POSTGRES_BIN, else searched for).
	Bin string
	// User is whom the server runs as if this process is root (default: postgres, else nobody).
	User string
	// Cache is where programs that had to be fetched are kept (default: below the user's cache folder).
	Cache string
	// FetchFrom is the URL of a repository to fetch them from (default: the public one).
	FetchFrom string
	// Log is told of starts and stops; the server's own log is server.log in Folder.
	Log zerolog.Logger
}

func (c PostgresConfig) withDefaults() PostgresConfig {
	if c.Connections == 0 {
		c.Connections = 200
	}
	if c.StartTimeout == 0 {
		c.StartTimeout = 60 * time.Second
	}
	if c.StopTimeout == 0 {
		c.StopTimeout = 10 * time.Second
	}
	if c.Bin == "" {
		c.Bin = os.Getenv(binEnv)
	}
	return c
}

// Postgres is a private server over a data folder. It ends with this process, also when that is killed. Its methods may
// be called from several goroutines.
type Postgres struct {
	cfg PostgresConfig

	mu        sync.Mutex
	folder    *Folder // open while the server runs
	process   *process
	socket    string // the folder of the unix socket
	temporary string // that folder again, where it is not below the data folder
	port      int    // also part of the socket's name
	secrets   secrets
	stopped   bool // the present end was asked for
}

// NewPostgres makes a server that is not running yet.
func NewPostgres(cfg PostgresConfig) *Postgres {
	p := &Postgres{cfg: cfg.withDefaults(), port: cfg.Port}
	if !cfg.TCP {
		p.port = socketPort
	}
	return p
}

// Start makes the database if the folder has none, stops what is left of a server whose parent was killed, and returns
// once the server takes connections. Starting a running server is fine. It gives a *FolderInUseError where another
// process has the folder open, and a *ForeignServerError where somebody else runs a server on it.
func (p *Postgres) Start(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.process != nil && p.process.running() {
		return nil
	}
	if err := p.start(ctx); err != nil {
		return errors.Join(fmt.Errorf("starting the private PostgreSQL server: %w", err), p.kill(), p.close())
	}
	return nil
}

func (p *Postgres) start(ctx context.Context) error {
	if p.folder == nil {
		folder, err := OpenFolder(p.cfg.Folder)
		if err != nil {
			return err
		}
		p.folder = folder
	}
	who, err := serverAccount(p.cfg.User)
	if err != nil {
		return err
	}
	if err := who.canEnter(p.folder.Path()); err != nil {
		return err
	}
	data := p.folder.Join(dataName)
	major, err := madeBy(data)
	if err != nil {
		return err
	}
	programs, err := p.programs(ctx, who, major)
	if err != nil {
		return err
	}
	c := cluster{folder: p.folder, data: data, who: who, programs: programs, noSync: p.cfg.NoSync}
	if p.secrets, err = c.prepare(ctx, major != 0); err != nil {
		return err
	}
	if p.socket, err = p.socketFolder(who); err != nil {
		return err
	}
	p.stopped = false
	if err := p.launch(ctx, c); err != nil {
		return err
	}
	if err := c.makeDatabase(ctx, p.superuserURL(), p.secrets); err != nil {
		return err
	}
	p.cfg.Log.Info().Int("pid", p.process.cmd.Process.Pid).Int("version", programs.Major).Str("folder", p.folder.Path()).
		Msg("PostgreSQL is running")
	return nil
}

func (p *Postgres) programs(ctx context.Context, who account, major int) (Binaries, error) {
	found, err := finder{who: who, explicit: p.cfg.Bin, major: major}.find(ctx)
	var missing *notFoundError
	if !errors.As(err, &missing) {
		return found, err
	}
	p.cfg.Log.Info().Msg("PostgreSQL is not installed: fetching it, once")
	found, err = fetcher{who: who, cache: p.cfg.Cache, from: p.cfg.FetchFrom, major: major}.fetch(ctx)
	if err != nil {
		missing.reasons = append(missing.reasons, err)
		return Binaries{}, missing
	}
	return found, nil
}

// longestSocket keeps the socket's whole path within what every system can bind (104 bytes on some).
const longestSocket = 100

// socketFolder is below the data folder unless that has too long a path.
func (p *Postgres) socketFolder(who account) (string, error) {
	folder := p.folder.Join("socket")
	if p.temporary != "" {
		return p.temporary, nil
	}
	if len(filepath.Join(folder, ".s.PGSQL.65535")) > longestSocket {
		var err error
		if folder, err = os.MkdirTemp("/tmp", "treeline-"); err != nil {
			return "", err
		}
		p.temporary = folder
	} else if err := os.MkdirAll(folder, 0o700); err != nil {
		return "", err
	}
	// Whoever runs a part of Treeline as another user still reaches the socket; the password decides.
	return folder, errors.Join(os.Chmod(folder, folderMode()), who.own(folder))
}

// The shared memory of a server that was killed is held until the kernel has taken the last of its processes apart, which is
// a moment after they are gone from the list of processes; how often and how long that is waited for.
const (
	memoryHeldTries = 50
	memoryHeldPause = 100 * time.Millisecond
)

// launch starts the server process and waits until it answers.
func (p *Postgres) launch(ctx context.Context, c cluster) error {
	for try := 1; ; try++ {
		err := p.launchOnce(ctx, c)
		if try == memoryHeldTries || !errors.Is(err, errMemoryHeld) {
			return err
		}
		if err := pause(ctx, memoryHeldPause); err != nil {
			return err
		}
	}
}

// launchOnce starts the server process and waits until it answers. A port that the system chose may be taken before the
// server gets to it: then another is tried.
func (p *Postgres) launchOnce(ctx context.Context, c cluster) error {
	if p.port != 0 {
		return p.launchOnPort(ctx, c)
	}
	for attempt := 1; ; attempt++ {
		var err error
		if p.port, err = freePort(); err != nil {
			return err
		}
		if err = p.launchOnPort(ctx, c); err == nil {
			return nil
		}
		p.port = 0
		if attempt == 5 || !errors.Is(err, errPortTaken) {
			return err
		}
	}
}

func (p *Postgres) launchOnPort(ctx context.Context, c cluster) error {
	ctx, cancel := context.WithTimeout(ctx, p.cfg.StartTimeout)
	defer cancel()
	started, err := c.run(serverOptions{socket: p.socket, tcp: p.cfg.TCP, port: p.port, connections: p.cfg.Connections})
	if err != nil {
		return err
	}
	p.process = started
	if err := c.ready(ctx, started, p.superuserURL()); err != nil {
		return errors.Join(err, p.kill())
	}
	return nil
}

func freePort() (int, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().(*net.TCPAddr).Port, nil
}

// Stop shuts the server down: clients are cut off, what is committed is on disk. It takes at most StopTimeout plus ten
// seconds. Stopping twice, or before starting, is fine.
func (p *Postgres) Stop() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := errors.Join(p.shutDown(), p.close()); err != nil {
		return fmt.Errorf("stopping the private PostgreSQL server: %w", err)
	}
	return nil
}

func (p *Postgres) shutDown() error {
	if p.process == nil || !p.process.running() {
		return nil
	}
	p.stopped = true
	if err := p.process.signal(syscall.SIGINT); err != nil {
		return err
	}
	if p.process.ended(p.cfg.StopTimeout) {
		return nil
	}
	p.cfg.Log.Warn().Msg("PostgreSQL does not stop in time: stopping it at once")
	if err := p.process.signal(syscall.SIGQUIT); err != nil {
		return err
	}
	if p.process.ended(5 * time.Second) {
		return nil
	}
	return p.kill()
}

// Kill ends the server and all its backends with SIGKILL, as a crash would. Start recovers.
func (p *Postgres) Kill() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := errors.Join(p.kill(), p.close()); err != nil {
		return fmt.Errorf("killing the private PostgreSQL server: %w", err)
	}
	return nil
}

func (p *Postgres) kill() error {
	if p.process == nil || !p.process.running() {
		return nil
	}
	p.stopped = true
	// Held still, the server makes no new backend while its backends are listed.
	if err := p.process.signal(syscall.SIGSTOP); err != nil {
		return err
	}
	data := p.folder.Join(dataName)
	if err := errors.Join(signalServers(data, syscall.SIGKILL), p.process.signal(syscall.SIGKILL)); err != nil {
		return err
	}
	gone, err := noServerWithin(context.Background(), data, 5*time.Second)
	if err == nil && !(gone && p.process.ended(5*time.Second)) {
		err = fmt.Errorf("process %d or a child of it does not end", p.process.cmd.Process.Pid)
	}
	return err
}

// close gives up what a server that has ended held.
func (p *Postgres) close() error {
	err := p.folder.Close()
	p.folder = nil
	if p.temporary != "" {
		err = errors.Join(err, os.RemoveAll(p.temporary))
		p.temporary = ""
	}
	return err
}

// Restart stops and starts the server, on the same port.
func (p *Postgres) Restart(ctx context.Context) error {
	if err := p.Stop(); err != nil {
		return err
	}
	return p.Start(ctx)
}

// Done is closed when the server that runs now ends; it is closed already where none runs.
func (p *Postgres) Done() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.process == nil {
		done := make(chan struct{})
		close(done)
		return done
	}
	return p.process.done
}

// Err says why the server ended without being asked to; nil while it runs and after Stop or Kill.
func (p *Postgres) Err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.process == nil || p.process.running() || p.stopped {
		return nil
	}
	if p.process.err == nil {
		return errors.New("the private PostgreSQL server ended by itself")
	}
	return fmt.Errorf("the private PostgreSQL server ended by itself: %w", p.process.err)
}

// URL connects to the database treeline, over the unix socket, as its owner. It holds the password. Empty before Start.
func (p *Postgres) URL() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.url(databaseName, databaseName, p.secrets.owner, "")
}

// TCPURL is URL over TCP. Empty where the server does not listen.
func (p *Postgres) TCPURL() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.cfg.TCP || p.port == 0 {
		return ""
	}
	return p.url(databaseName, databaseName, p.secrets.owner, p.addr())
}

// Addr is host:port of the server. Empty where it does not listen on TCP.
func (p *Postgres) Addr() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.cfg.TCP || p.port == 0 {
		return ""
	}
	return p.addr()
}

func (p *Postgres) addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(p.port)) }

// SuperuserURL connects to the database postgres as the superuser, for what its owner may not do. Empty before Start.
func (p *Postgres) SuperuserURL() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.superuserURL()
}

func (p *Postgres) superuserURL() string {
	return p.url("postgres", superuserName, p.secrets.superuser, "")
}

func (p *Postgres) url(database, user, password, addr string) string {
	if password == "" {
		return ""
	}
	u := url.URL{Scheme: "postgres", User: url.UserPassword(user, password), Host: addr, Path: "/" + database}
	query := url.Values{"sslmode": {"disable"}}
	if addr == "" {
		query.Set("host", p.socket)
		query.Set("port", strconv.Itoa(p.port))
	}
	u.RawQuery = query.Encode()
	return u.String()
}
