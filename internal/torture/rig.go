package torture

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"treeline/internal/devenv"
	"treeline/internal/store"
)

// portalKey opens the portal's routes of a tortured fleet, which lives on the loopback interface for a minute.
const portalKey = "torture"

// Rig is a fleet of separate processes: Postgres, NATS, and some of each role.
type Rig struct {
	Folder   string
	Postgres *devenv.Postgres
	NATS     *Process
	// Roles are the dispatchers and workers, by name.
	Dispatchers, FileWorkers, CodeWorkers []*Process
	// LeftOut says what this machine cannot have, and why.
	LeftOut []string
	// Links are the proxies between each role and its servers; nil where the rig has none.
	Links    []*Proxy
	Settings Settings

	urls    []string
	natsURL string
	disk    *disk // the database server's; nil where it has no small one
}

// temporary is the folder, below the rig's, for temporary files of its processes.
const temporary = "tmp"

// RigConfig says what to start.
type RigConfig struct {
	// Folder is the rig's own, to be reached by the account of the database server.
	Folder                   string
	Dispatchers, FileWorkers int
	// CodeWorkers are left out where the machine cannot seal a run.
	CodeWorkers int
	// SmallDisk puts the database on a small file system of its own, where that can be had.
	SmallDisk bool
	// Proxied puts a proxy between each role and each server.
	Proxied  bool
	Settings Settings
	Log      zerolog.Logger
}

// NewRig starts a fleet. Close ends it, also after an error.
func NewRig(ctx context.Context, cfg RigConfig) (r *Rig, err error) {
	r = &Rig{Folder: cfg.Folder, Settings: cfg.Settings}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.Close())
		}
	}()
	if err := os.Mkdir(filepath.Join(cfg.Folder, temporary), 0o700); err != nil {
		return r, fmt.Errorf("make a folder: %w", err)
	}
	database := filepath.Join(cfg.Folder, "database")
	if cfg.SmallDisk {
		var missing error
		if r.disk, missing = newDisk(database); missing != nil {
			r.LeftOut = append(r.LeftOut, "disk-full: "+missing.Error())
		}
	}
	r.Postgres = devenv.NewPostgres(devenv.PostgresConfig{Folder: filepath.Join(database, "postgres"), TCP: true, Log: cfg.Log})
	if err := r.Postgres.Start(ctx); err != nil {
		return r, err
	}
	if err := store.Migrate(ctx, r.Postgres.URL()); err != nil {
		return r, err
	}
	port, err := freePort()
	if err != nil {
		return r, err
	}
	r.NATS = r.process("nats", spec{Kind: kindNATS, Folder: filepath.Join(cfg.Folder, "nats"), Port: port})
	if err := r.NATS.Start(ctx); err != nil {
		return r, err
	}
	if r.natsURL, err = natsURL(filepath.Join(cfg.Folder, "nats"), port); err != nil {
		return r, err
	}
	for i := range cfg.Dispatchers {
		if err := r.addDispatcher(i, cfg.Proxied); err != nil {
			return r, err
		}
	}
	for i := range cfg.FileWorkers {
		p, err := r.role(fmt.Sprintf("fileworker-%d", i+1), spec{Kind: kindFileWorker}, cfg.Proxied)
		if err != nil {
			return r, err
		}
		r.FileWorkers = append(r.FileWorkers, p)
	}
	for i := range cfg.CodeWorkers {
		p, err := r.role(fmt.Sprintf("codeworker-%d", i+1), spec{Kind: kindCodeWorker}, cfg.Proxied)
		if err != nil {
			return r, err
		}
		r.CodeWorkers = append(r.CodeWorkers, p)
	}
	return r, r.StartAll(ctx)
}

func (r *Rig) addDispatcher(i int, proxied bool) error {
	port, err := freePort()
	if err != nil {
		return err
	}
	listen := fmt.Sprintf("127.0.0.1:%d", port)
	p, err := r.role(fmt.Sprintf("dispatcher-%d", i+1), spec{Kind: kindDispatcher, Listen: listen, PortalKey: portalKey}, proxied)
	if err != nil {
		return err
	}
	r.Dispatchers, r.urls = append(r.Dispatchers, p), append(r.urls, "http://"+listen)
	return nil
}

func (r *Rig) process(name string, s spec) *Process {
	s.Settings = r.Settings
	return &Process{Name: name, spec: s, log: filepath.Join(r.Folder, name+".log"), temporary: filepath.Join(r.Folder, temporary)}
}

// role makes the process of one role, with wires of its own to the servers.
func (r *Rig) role(name string, s spec, proxied bool) (*Process, error) {
	s.DatabaseURL, s.NATSURL = r.Postgres.TCPURL(), r.natsURL
	if proxied {
		for _, to := range []*string{&s.DatabaseURL, &s.NATSURL} {
			u, err := url.Parse(*to)
			if err != nil {
				return nil, errors.New("a server's URL cannot be read") // the URL holds a password
			}
			link, err := NewProxy(u.Host)
			if err != nil {
				return nil, err
			}
			r.Links = append(r.Links, link)
			u.Host = link.Addr()
			*to = u.String()
		}
	}
	return r.process(name, s), nil
}

// Roles are all processes of roles.
func (r *Rig) Roles() []*Process {
	return slices.Concat(r.Dispatchers, r.FileWorkers, r.CodeWorkers)
}

// StartAll mends every wire and starts whatever does not run.
func (r *Rig) StartAll(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for _, l := range r.Links {
		l.Set(Whole)
	}
	if err := r.Postgres.Start(ctx); err != nil {
		return err
	}
	for _, p := range append([]*Process{r.NATS}, r.Roles()...) {
		if err := errors.Join(p.Resume(), p.Start(ctx)); err != nil {
			return err
		}
	}
	return nil
}

// WipeNATS kills the NATS server and starts one that has lost every stream.
func (r *Rig) WipeNATS(ctx context.Context) error {
	if err := r.NATS.Kill(); err != nil {
		return err
	}
	if err := os.RemoveAll(filepath.Join(r.Folder, "nats", "store")); err != nil {
		return fmt.Errorf("wipe the queue: %w", err)
	}
	return r.NATS.Start(ctx)
}

// Client makes a client of the rig's fleet.
func (r *Rig) Client() (*Client, error) { return NewClient(r.urls, portalKey, r.natsURL) }

// Monitor makes a subscriber to the rig's results.
func (r *Rig) Monitor() (*Monitor, error) { return NewMonitor(r.natsURL) }

// Close ends everything and says what did not end as asked.
func (r *Rig) Close() error {
	var errs []error
	for _, l := range r.Links {
		l.Set(Whole)
	}
	for _, p := range r.Roles() {
		errs = append(errs, p.Resume(), p.Term(r.Settings.Grace+5*time.Second), p.Kill())
	}
	if r.NATS != nil {
		errs = append(errs, r.NATS.Term(10*time.Second), r.NATS.Kill())
	}
	for _, l := range r.Links {
		errs = append(errs, l.Close())
	}
	if r.Postgres != nil {
		errs = append(errs, r.Postgres.Stop())
	}
	errs = append(errs, r.disk.close())
	return errors.Join(errs...)
}

// natsURL gives the URL of the server over a folder, whose password is kept there.
func natsURL(folder string, port int) (string, error) {
	b, err := os.ReadFile(filepath.Join(folder, "password"))
	if err != nil {
		return "", fmt.Errorf("read the queue's password: %w", err)
	}
	u := url.URL{Scheme: "nats", User: url.UserPassword("treeline", strings.TrimSpace(string(b))), Host: fmt.Sprintf("127.0.0.1:%d", port)}
	return u.String(), nil
}

// freePort finds a port that nobody listens on now.
func freePort() (int, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	defer func() { _ = ln.Close() }()
	return ln.Addr().(*net.TCPAddr).Port, nil
}

// NewFolder makes an empty folder that the account of the database server can enter.
func NewFolder() (string, error) {
	f, err := os.MkdirTemp("/tmp", folders)
	if err != nil {
		return "", fmt.Errorf("make a folder: %w", err)
	}
	if os.Geteuid() == 0 {
		if err := os.Chmod(f, 0o711); err != nil {
			return "", fmt.Errorf("open the folder to the database server: %w", err)
		}
	}
	return f, nil
}
