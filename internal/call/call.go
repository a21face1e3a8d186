// Package call holds the words that every part of the fleet shares: a call, its result, and the refusal that tells a
// model how to go on. It knows no transport and no storage.
package call

import (
	"encoding/json"
	"strings"
	"time"
)

// ValidID reports whether s is an identifier, as all that come from outside are (conversation, turn, call, upload, artifact,
// ref, skill): 1 to 64 of A-Z, a-z, 0-9, "_" and "-".
func ValidID(s string) bool {
	if len(s) == 0 || len(s) > 64 {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '_' && c != '-' {
			return false
		}
	}
	return true
}

// ReservedPrefix begins the turn ids and result refs that Treeline makes itself; callers may not use it.
const ReservedPrefix = "tl-"

// Status says how a call ended.
type Status string

const (
	// OK is a call that did its work.
	OK Status = "ok"
	// Refused is a call that changed nothing and that the model can mend.
	Refused Status = "refused"
	// Failed is a call whose work itself went wrong.
	Failed Status = "failed"
)

// Key names one call: its turn's conversation, its turn, and the id its caller chose.
type Key struct {
	Conversation string
	Turn         string
	Call         string
}

func (k Key) String() string { return k.Conversation + "." + k.Turn + "." + k.Call }

// Content is one block for the model, in the form of MCP content blocks.
type Content struct {
	Type     string `json:"type"` // "text" or "image"
	Text     string `json:"text,omitempty"`
	Data     []byte `json:"data,omitempty"` // base64 in JSON
	MIMEType string `json:"mimeType,omitempty"`
}

// Text makes a text block.
func Text(s string) Content { return Content{Type: "text", Text: s} }

// TextOf joins the text blocks of a content, a newline between two.
func TextOf(content []Content) string {
	var parts []string
	for _, c := range content {
		if c.Type == "text" {
			parts = append(parts, c.Text)
		}
	}
	return strings.Join(parts, "\n")
}

// MarshalJSON keeps the text member of a text block even where it is empty, as MCP asks.
func (c Content) MarshalJSON() ([]byte, error) {
	if c.Type == "text" {
		return json.Marshal(struct {
			Type string `json:"type"`
			Text string `json:"text"`
		}{c.Type, c.Text})
	}
	type plain Content
	return json.Marshal(plain(c))
}

// Changes lists the paths a call created, modified and deleted, each sorted.
type Changes struct {
	Created  []string `json:"created"`
	Modified []string `json:"modified"`
	Deleted  []string `json:"deleted"`
}

// Empty reports whether nothing changed.
func (c Changes) Empty() bool { return len(c.Created)+len(c.Modified)+len(c.Deleted) == 0 }

// Normal gives the same changes with no nil list, so that JSON has arrays.
func (c Changes) Normal() Changes {
	for _, l := range []*[]string{&c.Created, &c.Modified, &c.Deleted} {
		if *l == nil {
			*l = []string{}
		}
	}
	return c
}

// Result answers a call. Its JSON is the wire form on every way in.
type Result struct {
	CallID          string          `json:"callId"`
	TurnID          string          `json:"turnId"`
	ConversationID  string          `json:"conversationId"`
	Tool            string          `json:"tool"`
	Seq             int64           `json:"seq"`
	Status          Status          `json:"status"`
	Code            Code            `json:"code"`
	IsError         bool            `json:"isError"`
	Content         []Content       `json:"content"`
	Data            json.RawMessage `json:"data"`
	Changes         Changes         `json:"changes"`
	ResultRef       string          `json:"resultRef"`
	ReplayArguments json.RawMessage `json:"replayArguments"`
	Attempt         int             `json:"attempt"`
	StartedAt       time.Time       `json:"startedAt"`
	FinishedAt      time.Time       `json:"finishedAt"`
}
