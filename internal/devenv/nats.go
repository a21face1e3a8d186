package devenv

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"
)

const (
	natsUser  = "treeline"
	natsStore = "store"
	natsReady = 20 * time.Second
	// MaxPayload is the largest message in bytes that the server takes. It is twice what a call may have, so that a call
	// that is too large arrives and can be told so.
	MaxPayload = 2 << 20
)

// NATSConfig says which server to run. Only Folder is needed.
type NATSConfig struct {
	// Folder is the server's own: it holds the streams and the password (0600).
	Folder string
	// Port on 127.0.0.1; 0 has the system choose one, which is kept while this NATS lives.
	Port int
	// Log gets the server's own log.
	Log zerolog.Logger
}

// NATS is an embedded server with JetStream on disk, on the loopback interface, for whoever has its password. Its
// methods may be called from several goroutines.
type NATS struct {
	cfg NATSConfig

	mu       sync.Mutex
	folder   *Folder // open while the server runs
	server   *server.Server
	port     int
	password string
	// orchestrator is the password of orchestratorUser.
	orchestrator string
}

// NewNATS makes a server that is not running yet.
func NewNATS(cfg NATSConfig) *NATS { return &NATS{cfg: cfg, port: cfg.Port} }

// Start returns once the server takes connections and JetStream has read its streams. Starting a running server is
// fine. It gives a *FolderInUseError where another process has the folder open.
func (n *NATS) Start() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.server != nil {
		return nil
	}
	if err := n.start(); err != nil {
		return errors.Join(fmt.Errorf("starting the embedded NATS server: %w", err), n.stop())
	}
	return nil
}

func (n *NATS) start() error {
	var err error
	if n.folder, err = OpenFolder(n.cfg.Folder); err != nil {
		return err
	}
	if n.password, err = n.folder.Secret("password"); err != nil {
		return err
	}
	if n.orchestrator, err = n.folder.Secret("orchestrator-password"); err != nil {
		return err
	}
	port := n.port
	if port == 0 {
		port = server.RANDOM_PORT
	}
	n.server, err = server.NewServer(&server.Options{
		ServerName: natsUser,
		Host:       "127.0.0.1",
		Port:       port,
		Users: []*server.User{
			{Username: natsUser, Password: n.password},
			{Username: orchestratorUser, Password: n.orchestrator, Permissions: orchestratorPermissions()},
		},
		MaxPayload: MaxPayload,
		JetStream:  true,
		StoreDir:   n.folder.Join(natsStore),
		NoSigs:     true, // this process decides when to stop
	})
	if err != nil {
		return err
	}
	log := &natsLog{log: n.cfg.Log}
	n.server.SetLoggerV2(log, false, false, false)
	go n.server.Start() // returns once it listens; stop ends it
	if !n.server.ReadyForConnections(natsReady) || !n.server.JetStreamEnabled() {
		return fmt.Errorf("it is not ready after %s: %s", natsReady, log.lastError())
	}
	address := n.server.ClientURL()
	parsed, err := url.Parse(address)
	if err != nil {
		return err
	}
	_, err = fmt.Sscan(parsed.Port(), &n.port)
	return err
}

// Stop closes all connections and the streams. Stopping twice, or before starting, is fine.
func (n *NATS) Stop() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.stop()
}

func (n *NATS) stop() error {
	if n.server != nil {
		n.server.Shutdown()
		n.server.WaitForShutdown()
		n.server = nil
	}
	err := n.folder.Close()
	n.folder = nil
	return err
}

// Restart stops and starts the server, on the same port.
func (n *NATS) Restart() error {
	if err := n.Stop(); err != nil {
		return err
	}
	return n.Start()
}

// Wipe restarts the server with every stream and consumer lost, as when its disk is.
func (n *NATS) Wipe() error {
	if err := n.Stop(); err != nil {
		return err
	}
	folder, err := OpenFolder(n.cfg.Folder) // not while another process uses it
	if err != nil {
		return fmt.Errorf("wiping the embedded NATS server: %w", err)
	}
	if err := errors.Join(os.RemoveAll(folder.Join(natsStore)), folder.Close()); err != nil {
		return fmt.Errorf("wiping the embedded NATS server: %w", err)
	}
	return n.Start()
}

// URL connects over TCP. It holds the password. Empty before Start.
func (n *NATS) URL() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.password == "" || n.port == 0 {
		return ""
	}
	return n.url(natsUser, n.password)
}

// OrchestratorURL connects as an orchestrator, who may make calls and read results and progress, and can neither read nor
// forge what the fleet's own parts tell one another. It holds the password. Empty before Start.
func (n *NATS) OrchestratorURL() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.orchestrator == "" || n.port == 0 {
		return ""
	}
	return n.url(orchestratorUser, n.orchestrator)
}

func (n *NATS) url(user, password string) string {
	u := url.URL{Scheme: "nats", User: url.UserPassword(user, password), Host: fmt.Sprintf("127.0.0.1:%d", n.port)}
	return u.String()
}

const orchestratorUser = "orchestrator"

// orchestratorPermissions are those of the way in over NATS: requests, results, progress, and consumers of the results. The
// fleet's own replies go to inboxes of another prefix.
func orchestratorPermissions() *server.Permissions {
	return &server.Permissions{
		Publish: &server.SubjectPermission{Allow: []string{
			"treeline.call", "treeline.result",
			"$JS.API.INFO", "$JS.API.STREAM.INFO.TREELINE_RESULTS", "$JS.API.STREAM.NAMES",
			"$JS.API.CONSUMER.CREATE.TREELINE_RESULTS.>", "$JS.API.CONSUMER.DURABLE.CREATE.TREELINE_RESULTS.>",
			"$JS.API.CONSUMER.INFO.TREELINE_RESULTS.>", "$JS.API.CONSUMER.DELETE.TREELINE_RESULTS.>",
			"$JS.API.CONSUMER.MSG.NEXT.TREELINE_RESULTS.>", "$JS.ACK.TREELINE_RESULTS.>", "$JS.FC.TREELINE_RESULTS.>",
		}},
		Subscribe: &server.SubjectPermission{Allow: []string{"treeline.results.>", "treeline.progress.>", "_INBOX.>"}},
	}
}

// InProcess gives the options of a connection that stays within this process: nats.Connect("", n.InProcess()...). It
// finds its way back to a server that was restarted.
func (n *NATS) InProcess() []nats.Option {
	n.mu.Lock()
	defer n.mu.Unlock()
	return []nats.Option{nats.InProcessServer(inProcess{n}), nats.UserInfo(natsUser, n.password)}
}

// inProcess dials whichever server runs at the time.
type inProcess struct{ nats *NATS }

func (p inProcess) InProcessConn() (net.Conn, error) {
	p.nats.mu.Lock()
	defer p.nats.mu.Unlock()
	if p.nats.server == nil {
		return nil, errors.New("the embedded NATS server is not running")
	}
	return p.nats.server.InProcessConn()
}

// natsLog hands the server's log on. Fatal is an error here: the server goes on to say so itself, and must not end the
// process.
type natsLog struct {
	log zerolog.Logger

	mu   sync.Mutex
	last string
}

func (l *natsLog) Noticef(format string, v ...any) { l.log.Debug().Msgf(format, v...) }
func (l *natsLog) Debugf(format string, v ...any)  { l.log.Debug().Msgf(format, v...) }
func (l *natsLog) Tracef(format string, v ...any)  { l.log.Trace().Msgf(format, v...) }

// Warnf leaves out what is by design: the passwords are random, and stand in files of mode 0600 of this server's own folder.
func (l *natsLog) Warnf(format string, v ...any) {
	if !strings.HasPrefix(format, "Plaintext passwords detected") {
		l.log.Warn().Msgf(format, v...)
	}
}

func (l *natsLog) Errorf(format string, v ...any) { l.fail(fmt.Sprintf(format, v...)) }
func (l *natsLog) Fatalf(format string, v ...any) { l.fail(fmt.Sprintf(format, v...)) }

func (l *natsLog) fail(text string) {
	l.log.Error().Msg(text)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last = strings.TrimSpace(text)
}

func (l *natsLog) lastError() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last == "" {
		return "it has told no error"
	}
	return l.last
}
