package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// note is what is known of a request by its end: for the log line and the metrics.
type note struct {
	route                    string
	conversation, turn, call string
	tool, code               string
	status                   int
	bytes                    int64
	answered                 bool
}

type noteKey struct{}

// noteOf gives the request's note; one that nobody reads where there is none.
func noteOf(r *http.Request) *note {
	if n, ok := r.Context().Value(noteKey{}).(*note); ok {
		return n
	}
	return &note{}
}

// meters are the server's metrics. Routes are named by their pattern, so that no client can make new series.
type meters struct {
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	underWay prometheus.Gauge
}

func newMeters(reg *prometheus.Registry) (meters, error) {
	m := meters{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "treeline_http_requests_total",
			Help: "HTTP requests answered, by route, method and status."}, []string{"route", "method", "status"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "treeline_http_request_seconds",
			Help: "How long HTTP requests took, waits for results included.", Buckets: prometheus.ExponentialBuckets(0.001, 4, 10)},
			[]string{"route", "method"}),
		underWay: prometheus.NewGauge(prometheus.GaugeOpts{Name: "treeline_http_requests_under_way",
			Help: "HTTP requests that are being answered."}),
	}
	for _, c := range []prometheus.Collector{m.requests, m.seconds, m.underWay} {
		if err := reg.Register(c); err != nil {
			return m, fmt.Errorf("register the metrics of the HTTP server: %w", err)
		}
	}
	return m, nil
}

// observe is the outermost layer: it bounds the connection's reads and writes, catches panics, counts, and logs one line
// a request.
func (s *Server) observe(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start, n := time.Now(), &note{}
		r = r.WithContext(context.WithValue(r.Context(), noteKey{}, n))
		out := &recorder{ResponseWriter: w, control: http.NewResponseController(w), note: n, write: s.cfg.Timeouts.Write}
		body := s.boundBody(out.control, r)
		s.meters.underWay.Inc()
		defer func() {
			s.meters.underWay.Dec()
			s.finish(n, r, time.Since(start))
		}()
		defer body.end(out)
		defer s.catch(out, r)
		next.ServeHTTP(out, r)
	})
}

// catch answers a panic. http.ErrAbortHandler is how a handler cuts an answer off, and is net/http's to see.
func (s *Server) catch(w http.ResponseWriter, r *http.Request) {
	p := recover()
	if p == nil {
		return
	}
	if err, ok := p.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		panic(p)
	}
	s.cfg.Log.Error().Str("route", noteOf(r).route).Interface("panic", p).Bytes("stack", debug.Stack()).Msg("panic in a handler")
	s.refuse(w, r, errors.New("panic in a handler"))
}

func (s *Server) finish(n *note, r *http.Request, took time.Duration) {
	route, method := n.route, r.Method
	if route == "" {
		route = "none"
	}
	switch method {
	case "GET", "HEAD", "PUT", "POST", "DELETE":
	default:
		method = "other"
	}
	s.meters.requests.WithLabelValues(route, method, strconv.Itoa(n.status)).Inc()
	s.meters.seconds.WithLabelValues(route, method).Observe(took.Seconds())
	event := s.cfg.Log.Info()
	if route == "/livez" || route == "/readyz" || route == "/metrics" {
		event = s.cfg.Log.Debug()
	}
	event.Str("method", method).Str("route", route).Int("status", n.status).Int64("bytes", n.bytes).Dur("took", took)
	for _, f := range []struct{ key, value string }{
		{"conversation", n.conversation}, {"turn", n.turn}, {"call", n.call}, {"tool", n.tool}, {"code", n.code},
	} {
		if f.value != "" {
			event.Str(f.key, f.value)
		}
	}
	event.Msg("request")
}

// recorder notes what is answered and gives each write its own deadline, so that a client that reads nothing is cut off
// and one that waits long is not.
type recorder struct {
	http.ResponseWriter
	control *http.ResponseController
	note    *note
	write   time.Duration
}

// Unwrap is for http.ResponseController.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// extend gives the next write its time. Connections that know no deadlines are tests' own.
func (r *recorder) extend() { _ = r.control.SetWriteDeadline(time.Now().Add(r.write)) }

func (r *recorder) WriteHeader(status int) {
	if !r.note.answered && status >= 200 {
		r.note.answered, r.note.status = true, status
	}
	r.extend()
	r.ResponseWriter.WriteHeader(status)
}

func (r *recorder) Write(b []byte) (int, error) {
	if !r.note.answered {
		r.note.answered, r.note.status = true, http.StatusOK
	}
	r.extend()
	n, err := r.ResponseWriter.Write(b)
	r.note.bytes += int64(n)
	return n, err
}
