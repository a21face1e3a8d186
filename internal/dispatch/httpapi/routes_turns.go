package httpapi

import (
	"net/http"
	"strings"
	"time"

	"treeline/internal/call"
	"treeline/internal/turn"
)

func (s *Server) turnRoutes() []Route {
	return []Route{
		{Method: "POST", Pattern: "/v1/conversations/{id}/turns", Access: PortalKey, ID: "openTurn",
			Summary:   "Open a turn. Its token is told this once.",
			Body:      &Body{ContentType: "application/json", Schema: "Turn"},
			Responses: []Response{{Status: 201, Description: "The turn.", ContentType: "application/json", Schema: "OpenedTurn"}}, Handle: s.openTurn},
		{Method: "POST", Pattern: "/v1/turns/{id}/close", Access: PortalKey, ID: "closeTurn",
			Summary:   "Close a turn for new calls. What it accepted still runs; closing twice is fine.",
			Body:      &Body{ContentType: "application/json", Schema: "Empty", Optional: true},
			Responses: []Response{{Status: 204, Description: "It is closed."}}, Handle: s.closeTurn},
	}
}

type turnBody struct {
	TurnID    string      `json:"turnId"`
	Caller    turn.Caller `json:"caller"`
	Tools     []string    `json:"tools"`
	Skills    []string    `json:"skills"`
	Knowledge []string    `json:"knowledge"`
	Model     struct {
		Vision bool `json:"vision"`
	} `json:"model"`
	ExpiresInSeconds int64 `json:"expiresInSeconds"`
}

func (s *Server) openTurn(w http.ResponseWriter, r *http.Request) error {
	var b turnBody
	if err := s.readJSON(w, r, "Turn", &b); err != nil {
		return err
	}
	if strings.HasPrefix(b.TurnID, call.ReservedPrefix) {
		return invalid("/turnId: ids that begin with %q are Treeline's own; choose another, or leave it out.", call.ReservedPrefix)
	}
	id := r.PathValue("id")
	turnID, token, err := s.cfg.Dispatcher.OpenTurn(r.Context(), turn.Turn{
		ID: b.TurnID, Conversation: id, Caller: b.Caller, Tools: b.Tools, Skills: b.Skills, Knowledge: b.Knowledge, Vision: b.Model.Vision,
	}, time.Duration(b.ExpiresInSeconds)*time.Second)
	if err != nil {
		return err
	}
	noteOf(r).turn = turnID
	return writeJSON(w, http.StatusCreated, struct {
		TurnID string `json:"turnId"`
		Token  string `json:"token"`
	}{turnID, token})
}

func (s *Server) closeTurn(w http.ResponseWriter, r *http.Request) error {
	if err := s.readJSON(w, r, "Empty", &struct{}{}); err != nil {
		return err
	}
	if err := s.cfg.Dispatcher.CloseTurn(r.Context(), r.PathValue("id")); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
