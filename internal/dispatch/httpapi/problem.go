package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"

	"treeline/internal/call"
	"treeline/internal/dispatch"
	"treeline/internal/ledger"
	"treeline/internal/outage"
	"treeline/internal/store"
)

// Problem is an error as the client sees it: an RFC 9457 problem document.
type Problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail,omitempty"`
	Code   string `json:"code"`
}

func (p *Problem) Error() string { return p.Code + ": " + p.Detail }

func invalid(format string, args ...any) *Problem {
	return &Problem{Status: http.StatusUnprocessableEntity, Code: string(call.InvalidArguments), Detail: fmt.Sprintf(format, args...)}
}

func notFound(code call.Code, format string, args ...any) *Problem {
	return &Problem{Status: http.StatusNotFound, Code: string(code), Detail: fmt.Sprintf(format, args...)}
}

// retryAfter is how many seconds a client should leave a system alone that cannot serve it.
const retryAfter = 2

// problemOf says what a client is told of an error. Only what is known to be harmless is told.
func problemOf(err error) *Problem {
	var p *Problem
	var refusal *call.Refusal
	var tooLong *http.MaxBytesError
	var body *store.BodyError
	switch {
	case errors.As(err, &p):
		q := *p
		return &q
	case errors.As(err, &refusal):
		return &Problem{Status: statusOf(refusal.Code), Code: string(refusal.Code), Detail: refusal.Text}
	case errors.Is(err, dispatch.ErrUnknownToken):
		return &Problem{Status: http.StatusUnauthorized, Code: string(call.TurnUnknown), Detail: "The token opens no turn."}
	case errors.Is(err, ledger.ErrNotThere), errors.Is(err, store.ErrAbsent):
		return notFound("not_found", "There is nothing of this name.")
	case errors.Is(err, ledger.ErrTurnExists):
		return &Problem{Status: http.StatusConflict, Code: "turn_exists", Detail: "The turn id is taken: choose another, or leave it out."}
	case errors.As(err, &tooLong):
		return &Problem{Status: http.StatusRequestEntityTooLarge, Code: string(call.TooLarge), Detail: fmt.Sprintf("The body is larger than %d bytes.", tooLong.Limit)}
	case errors.As(err, &body) && errors.Is(err, os.ErrDeadlineExceeded):
		return &Problem{Status: http.StatusRequestTimeout, Code: "body_timeout", Detail: "The body did not arrive in time."}
	case errors.As(err, &body):
		return &Problem{Status: http.StatusBadRequest, Code: "body_incomplete", Detail: "The body ended before it was whole, or cannot be read."}
	case outage.Is(err):
		return &Problem{Status: http.StatusServiceUnavailable, Code: "unavailable", Detail: "The system cannot be reached by this service at the moment. Nothing is known to be done; try again."}
	}
	return &Problem{Status: http.StatusInternalServerError, Code: string(call.Internal), Detail: "The system failed at this request."}
}

// statusOf gives the status of a refusal on the portal's routes.
func statusOf(code call.Code) int {
	switch code {
	case call.PathNotFound, call.InputNotFound:
		return http.StatusNotFound
	case call.PathClash, call.PathLookalike, call.Busy, call.HistoryGone, call.ConversationDeleted, call.TurnClosed:
		return http.StatusConflict
	case call.WorkspaceFull, call.TooLarge, call.InputsTooLarge, call.SkillTooLarge:
		return http.StatusRequestEntityTooLarge
	case call.TurnUnknown:
		return http.StatusUnauthorized
	case call.Internal:
		return http.StatusInternalServerError
	case call.WorkerLost:
		return http.StatusServiceUnavailable
	}
	return http.StatusUnprocessableEntity
}

// refuse answers a request with the problem that err is.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, err error) {
	p := problemOf(err)
	if p.Status >= 500 {
		event := s.cfg.Log.Error()
		if p.Status == http.StatusServiceUnavailable {
			event = s.cfg.Log.Warn()
		}
		if !errors.Is(err, context.Canceled) {
			event.Err(err).Str("method", r.Method).Str("route", noteOf(r).route).Msg("request failed")
		}
	}
	note := noteOf(r)
	note.code = p.Code
	if note.answered {
		return // too late: part of an answer is out, and is cut off
	}
	drain(w, r)
	p.Type, p.Title = "urn:treeline:problem:"+p.Code, http.StatusText(p.Status)
	h := w.Header()
	switch p.Status {
	case http.StatusUnauthorized:
		h.Set("WWW-Authenticate", `Bearer realm="treeline"`)
	case http.StatusRequestTimeout:
		h.Set("Connection", "close")
	}
	if p.Status == http.StatusServiceUnavailable || p.Code == string(call.Busy) {
		h.Set("Retry-After", strconv.Itoa(retryAfter))
	}
	b, err := json.Marshal(p)
	if err != nil {
		w.WriteHeader(p.Status)
		return
	}
	h.Set("Content-Type", "application/problem+json")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	for _, name := range []string{"Content-Disposition", "ETag", "Last-Modified", "Content-Length"} {
		h.Del(name)
	}
	w.WriteHeader(p.Status)
	_, _ = w.Write(b) // a client that is gone needs no answer
}

// writeJSON answers with a value.
func writeJSON(w http.ResponseWriter, status int, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode the answer: %w", err)
	}
	writeBody(w, status, string(b))
	return nil
}

// writeBody answers with a value in its wire form.
func writeBody(w http.ResponseWriter, status int, body string) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body) // a client that is gone needs no answer
}
