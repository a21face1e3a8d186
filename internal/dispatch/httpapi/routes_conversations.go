package httpapi

import (
	"context"
	"net/http"
	"time"

	"treeline/internal/call"
	"treeline/internal/store"
)

func (s *Server) conversationRoutes() []Route {
	one := []Response{{Status: 200, Description: "The conversation.", ContentType: "application/json", Schema: "Conversation"}}
	none := &Body{ContentType: "application/json", Schema: "Empty", Optional: true}
	return []Route{
		{Method: "PUT", Pattern: "/v1/conversations/{id}", Access: PortalKey, ID: "putConversation", Summary: "Make a conversation, or leave it as it is.", Body: none,
			Responses: append([]Response{{Status: 201, Description: "It is new.", ContentType: "application/json", Schema: "Conversation"}}, one...),
			Handle:    s.putConversation},
		{Method: "GET", Pattern: "/v1/conversations/{id}", Access: PortalKey, ID: "getConversation", Summary: "What is known of a conversation, a deleted one too.",
			Responses: one, Handle: s.getConversation},
		{Method: "DELETE", Pattern: "/v1/conversations/{id}", Access: PortalKey, ID: "deleteConversation",
			Summary:   "Delete a conversation: its workspace, history and stored results are gone, what runs is stopped.",
			Responses: []Response{{Status: 204, Description: "It is deleted."}}, Handle: s.deleteConversation},
		{Method: "POST", Pattern: "/v1/conversations/{id}/restore", Access: PortalKey, ID: "restoreConversation",
			Summary: "Open a deleted conversation again, with an empty workspace.", Body: none, Responses: one, Handle: s.restoreConversation},
	}
}

type conversationView struct {
	ID        string     `json:"id"`
	Files     int        `json:"files"`
	Bytes     int64      `json:"bytes"`
	LastSeq   int64      `json:"lastSeq"`
	Open      int        `json:"open"`
	CreatedAt time.Time  `json:"createdAt"`
	DeletedAt *time.Time `json:"deletedAt,omitempty"`
}

func (s *Server) putConversation(w http.ResponseWriter, r *http.Request) error {
	if err := s.readJSON(w, r, "Empty", &struct{}{}); err != nil {
		return err
	}
	id := r.PathValue("id")
	made, err := s.cfg.Dispatcher.PutConversation(r.Context(), id)
	if err != nil {
		return err
	}
	c, err := s.open(r.Context(), id)
	if err != nil {
		return err
	}
	status := http.StatusOK
	if made {
		status = http.StatusCreated
	}
	return writeJSON(w, status, conversationView(c))
}

func (s *Server) getConversation(w http.ResponseWriter, r *http.Request) error {
	c, err := s.conversation(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, conversationView(c))
}

func (s *Server) deleteConversation(w http.ResponseWriter, r *http.Request) error {
	if err := s.cfg.Dispatcher.DeleteConversation(r.Context(), r.PathValue("id")); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (s *Server) restoreConversation(w http.ResponseWriter, r *http.Request) error {
	if err := s.readJSON(w, r, "Empty", &struct{}{}); err != nil {
		return err
	}
	if err := s.cfg.Dispatcher.RestoreConversation(r.Context(), r.PathValue("id")); err != nil {
		return err
	}
	return s.getConversation(w, r)
}

// conversation reads a conversation, a deleted one too.
func (s *Server) conversation(ctx context.Context, id string) (store.Conversation, error) {
	return s.cfg.Library.Conversation(ctx, id)
}

// open reads a conversation that is to be changed: a deleted one is a conflict.
func (s *Server) open(ctx context.Context, id string) (store.Conversation, error) {
	c, err := s.conversation(ctx, id)
	if err == nil && c.DeletedAt != nil {
		return c, &Problem{Status: http.StatusConflict, Code: string(call.ConversationDeleted),
			Detail: "The conversation is deleted. POST .../restore opens it again, with an empty workspace."}
	}
	return c, err
}

// readable reads a conversation of which something is to be read: of a deleted one there is nothing.
func (s *Server) readable(ctx context.Context, id string) (store.Conversation, error) {
	c, err := s.conversation(ctx, id)
	if err == nil && c.DeletedAt != nil {
		return c, notFound(call.ConversationDeleted, "The conversation is deleted, and its workspace with it.")
	}
	return c, err
}
