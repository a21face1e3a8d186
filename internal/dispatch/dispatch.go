// Package dispatch authorises, validates and accepts calls, publishes them, and waits for their results. The ways in
// (internal/dispatch/httpapi, natsapi) only translate to and from it.
package dispatch

import (
	"encoding/json"
	"errors"
	"time"

	"treeline/internal/call"
)

// ErrUnknownToken says that a token is nobody's.
var ErrUnknownToken = errors.New("the token is nobody's")

// Request is one call as a caller sends it.
type Request struct {
	CallID    string          `json:"callId"`
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments"`
}

// Answer is what is known of a call: its result, or where it stands.
type Answer struct {
	CallID string
	Seq    int64
	// Result is set where the call is done.
	Result *call.Result
	// Told is the result's wire form, where it came as that: it need not be encoded again.
	Told string
	// State is the ledger's: queued, released, running, done.
	State string
	// Duplicate says that the call was known before it was sent this time.
	Duplicate bool
}

// Notice is one event of a turn, for a subscriber: a result or a progress.
type Notice struct {
	// Kind is "result" or "progress".
	Kind string
	Call string
	// Data is the message in its wire form (schemas/messages/result.json, progress.json).
	Data json.RawMessage
}

// PortalRequest is a person's change of a workspace: a call of lane file in the conversation's portal turn.
type PortalRequest struct {
	Conversation string
	// Tool is portal_put, portal_delete or portal_revert.
	Tool      string
	Arguments any
	// Actor is who acts, from the Treeline-Actor header; it is kept in the history.
	Actor string
	// Wait bounds how long to wait for the result.
	Wait time.Duration
}
