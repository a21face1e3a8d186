package httpapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// events streams what is told of the turn until the client goes, falls too far behind, or the server stops.
func (s *Server) events(w http.ResponseWriter, r *http.Request) error {
	notices, err := s.cfg.Dispatcher.Watch(r.Context(), bearer(r))
	if err != nil {
		return err
	}
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Accel-Buffering", "no") // proxies would hold events back
	w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodHead {
		return nil
	}
	tick := time.NewTicker(s.cfg.Timeouts.KeepAlive)
	defer tick.Stop()
	next := []byte(": watching\n\n")
	for {
		if err := send(w, next); err != nil {
			return nil // the client is gone
		}
		select {
		case <-s.stop:
			return nil
		case <-tick.C:
			next = []byte(": still here\n\n")
		case n, open := <-notices:
			if !open {
				return nil
			}
			if next, err = event(n.Kind, n.Call, n.Data); err != nil {
				return err
			}
		}
	}
}

func send(w http.ResponseWriter, b []byte) error {
	if _, err := w.Write(b); err != nil {
		return err
	}
	return http.NewResponseController(w).Flush()
}

// event writes one server-sent event; its data is compact JSON and therefore one line.
func event(kind, id string, data json.RawMessage) ([]byte, error) {
	var b bytes.Buffer
	fmt.Fprintf(&b, "event: %s\nid: %s\ndata: ", kind, id)
	if err := json.Compact(&b, data); err != nil {
		return nil, fmt.Errorf("read what was told: %w", err)
	}
	b.WriteString("\n\n")
	return b.Bytes(), nil
}
