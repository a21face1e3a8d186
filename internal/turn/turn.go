// Package turn holds what a token opens: one turn of one conversation, its caller, and the tools that it was offered.
package turn

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"slices"
	"time"
)

// Caller is the person on whose behalf an answer is made.
type Caller struct {
	User        string   `json:"user"`
	Department  string   `json:"department"`
	Collections []string `json:"collections,omitempty"`
}

// Turn is one answer being made. Its facts never change; whether it still takes calls is decided in the transaction
// that accepts them.
type Turn struct {
	ID           string
	Conversation string
	// Generation is the conversation's at the time the turn was made. A deletion makes a new one.
	Generation int64
	Caller     Caller
	// Tools are the names offered, also those of tools that do not exist: these are kept and never reached.
	Tools     []string
	Skills    []string
	Knowledge []string
	Vision    bool
	// Portal marks the turn of the portal itself, whose calls are a person's: guards do not apply to them.
	Portal    bool
	ExpiresAt *time.Time
}

// Offers reports whether the turn was offered the tool.
func (t Turn) Offers(tool string) bool { return slices.Contains(t.Tools, tool) }

// NewToken makes a token of 256 random bits and its hash; only the hash is stored.
func NewToken() (token string, hash [32]byte) {
	var b [32]byte
	_, _ = rand.Read(b[:]) // never fails: crypto/rand ends the program instead
	token = "tlt_" + base64.RawURLEncoding.EncodeToString(b[:])
	return token, Hash(token)
}

// Hash is what a token is looked up by. Looking up by a hash of the whole token leaves nothing to compare byte by byte.
func Hash(token string) [32]byte { return sha256.Sum256([]byte(token)) }
