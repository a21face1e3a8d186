package httpapi

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

func (s *Server) serviceRoutes() []Route {
	up := []Response{{Status: 200, Description: "Yes.", ContentType: "application/json"}}
	metrics := promhttp.HandlerFor(s.cfg.Metrics, promhttp.HandlerOpts{})
	return []Route{
		{Method: "GET", Pattern: "/openapi.json", ID: "describe", Summary: "This document.",
			Responses: []Response{{Status: 200, Description: "The OpenAPI document.", ContentType: "application/json"}}, Handle: s.describe},
		{Method: "GET", Pattern: "/livez", Unguarded: true, ID: "live", Summary: "Whether the process is alive.", Responses: up, Handle: s.live},
		{Method: "GET", Pattern: "/readyz", Unguarded: true, ID: "ready", Summary: "Whether the process can serve.", Responses: up, Handle: s.ready},
		{Method: "GET", Pattern: "/metrics", Unguarded: true, ID: "metrics", Summary: "Metrics, as Prometheus reads them.",
			Responses: []Response{{Status: 200, Description: "The metrics.", ContentType: "text/plain"}},
			Handle: func(w http.ResponseWriter, r *http.Request) error {
				metrics.ServeHTTP(w, r)
				return nil
			}},
	}
}

type health struct {
	Status string `json:"status"`
}

func (s *Server) live(w http.ResponseWriter, _ *http.Request) error {
	return writeJSON(w, http.StatusOK, health{"ok"})
}

func (s *Server) ready(w http.ResponseWriter, _ *http.Request) error {
	if s.draining.Load() {
		return &Problem{Status: http.StatusServiceUnavailable, Code: "stopping", Detail: "The process is stopping."}
	}
	if s.cfg.Ready != nil {
		if err := s.cfg.Ready(); err != nil {
			s.cfg.Log.Warn().Err(err).Msg("not ready")
			return &Problem{Status: http.StatusServiceUnavailable, Code: "not_ready", Detail: "The process cannot serve at the moment; its log says why."}
		}
	}
	return writeJSON(w, http.StatusOK, health{"ok"})
}
