// Package httpapi is the way in over HTTP: tool calls under a turn's token, and what people do to conversations under
// the portal's key. One table of routes makes both the mux and the OpenAPI document.
package httpapi

import (
	"context"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"treeline/internal/call"
	"treeline/internal/catalogue"
	"treeline/internal/dispatch"
	"treeline/internal/store"
	"treeline/internal/turn"
	"treeline/internal/workspace"
)

// Dispatcher is what the routes need of the dispatcher; *dispatch.Dispatcher is one.
type Dispatcher interface {
	Call(ctx context.Context, token string, r dispatch.Request, wait time.Duration) (dispatch.Answer, error)
	Lookup(ctx context.Context, token, callID string) (dispatch.Answer, error)
	Cancel(ctx context.Context, token, callID string) (dispatch.Answer, error)
	Tools(ctx context.Context, token string) ([]catalogue.Tool, error)
	Watch(ctx context.Context, token string) (<-chan dispatch.Notice, error)
	Portal(ctx context.Context, r dispatch.PortalRequest) (call.Result, error)
	PutConversation(ctx context.Context, id string) (made bool, err error)
	DeleteConversation(ctx context.Context, id string) error
	RestoreConversation(ctx context.Context, id string) error
	OpenTurn(ctx context.Context, t turn.Turn, expiresIn time.Duration) (turnID, token string, err error)
	CloseTurn(ctx context.Context, turnID string) error
}

// Library is what people read of conversations, and where an upload's bytes wait; *store.Portal is one.
type Library interface {
	Conversation(ctx context.Context, id string) (store.Conversation, error)
	Files(ctx context.Context, conversation string) ([]store.File, error)
	File(ctx context.Context, conversation, path string) (store.File, error)
	Piece(ctx context.Context, conversation string, sum store.SHA256, n int) ([]byte, error)
	Stage(ctx context.Context, body io.Reader) (store.Upload, error)
	Unstage(ctx context.Context, id string) error
	Steps(ctx context.Context, conversation string, after store.StepsAfter, limit int) ([]store.Step, error)
	Changes(ctx context.Context, conversation string, after store.ChangesAfter, limit int) ([]store.Change, error)
}

// Timeouts bound how long a client may keep a connection without getting on.
type Timeouts struct {
	// Header is how long a request's header may take; Idle how long a connection may wait for its next request.
	Header, Idle time.Duration
	// Body is how long each 64 KiB of a body may take to arrive; Write how long each write may take to leave.
	Body, Write time.Duration
	// KeepAlive is how often a silent stream of events gets a comment.
	KeepAlive time.Duration
	// Grace is how long stopping may take. Requests may go on until its end; waits for results end half way between the
	// closing of the door and that.
	Grace time.Duration
	// Notice is how much of Grace the server goes on taking requests while it says that it is not ready, so that whoever
	// sends it requests has seen that before the door is closed. None by default, and never more than half of Grace.
	Notice time.Duration
}

// DefaultTimeouts suit people and services on ordinary networks.
func DefaultTimeouts() Timeouts {
	return Timeouts{Header: 10 * time.Second, Idle: 2 * time.Minute, Body: 30 * time.Second, Write: 30 * time.Second,
		KeepAlive: 15 * time.Second, Grace: 20 * time.Second}
}

// Config is what a server is made of. Timeouts that are 0 take their defaults.
type Config struct {
	Dispatcher Dispatcher
	Library    Library
	Stores     Stores
	Keys       Keys
	Limits     workspace.Limits
	// Listen is the address listened on. A Host header may name it, a loopback name, or one of AllowedHosts: "name" for any
	// port or "name:port".
	Listen       string
	AllowedHosts []string
	Timeouts     Timeouts
	// Ready says why the process cannot serve, or nil.
	Ready func() error
	// Metrics is where the server's own metrics are registered and what /metrics shows.
	Metrics *prometheus.Registry
	Log     zerolog.Logger
	// More are routes of other packages.
	More []Route
}

// Server serves the routes.
type Server struct {
	cfg      Config
	hosts    hosts
	handler  http.Handler
	routes   []Route
	meters   meters
	openAPI  []byte
	draining atomic.Bool
	// stop is closed when the server begins to stop; cut ends when waits for results must.
	stop     chan struct{}
	cut      context.Context
	cutWaits context.CancelFunc
}

// New makes a server. It fails on a table of routes that contradicts itself.
func New(cfg Config) (*Server, error) {
	cfg.Timeouts = cfg.Timeouts.withDefaults()
	if cfg.Metrics == nil {
		cfg.Metrics = prometheus.NewRegistry()
	}
	s := &Server{cfg: cfg, hosts: newHosts(cfg.Listen, cfg.AllowedHosts), stop: make(chan struct{})}
	s.cut, s.cutWaits = context.WithCancel(context.Background())
	s.routes = s.table()
	var err error
	if s.meters, err = newMeters(cfg.Metrics); err != nil {
		return nil, err
	}
	if s.openAPI, err = openAPI(s.routes); err != nil {
		return nil, err
	}
	mux, err := s.mux()
	if err != nil {
		return nil, err
	}
	s.handler = s.observe(s.guard(mux))
	return s, nil
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }

// Routes gives the table of routes.
func (s *Server) Routes() []Route { return s.routes }

func (t Timeouts) withDefaults() Timeouts {
	d := DefaultTimeouts()
	for _, p := range []struct {
		have *time.Duration
		want time.Duration
	}{
		{&t.Header, d.Header}, {&t.Idle, d.Idle}, {&t.Body, d.Body}, {&t.Write, d.Write}, {&t.KeepAlive, d.KeepAlive}, {&t.Grace, d.Grace},
	} {
		if *p.have <= 0 {
			*p.have = p.want
		}
	}
	return t
}
