package httpapi

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"treeline/internal/call"
	"treeline/internal/dispatch"
)

const (
	// defaultWait is how long a call is waited for unless Prefer says otherwise; maxWait the most it may say.
	defaultWait = 60 * time.Second
	maxWait     = 600 * time.Second
	// maxToolName is the longest name, in bytes, that may stand for a tool in a path.
	maxToolName = 256
)

func (s *Server) toolRoutes() []Route {
	answers := []Response{
		{Status: 200, Description: "The result. A refusal is one too: its status is refused.", ContentType: "application/json", Schema: "Result"},
		{Status: 202, Description: "The call waits or runs; Location is where to ask for it.", ContentType: "application/json", Schema: "Pending"},
	}
	return []Route{
		{Method: "GET", Pattern: "/v1/tools", Access: TurnToken, ID: "listTools", Summary: "The tools that the turn was offered.",
			Responses: []Response{{Status: 200, Description: "The tools.", ContentType: "application/json", Schema: "Tools"}},
			Handle:    s.listTools},
		{Method: "POST", Pattern: "/v1/tools/{tool}", Access: TurnToken, ID: "callTool", Summary: "Call a tool and wait for its result.",
			Params: []Param{waitParam(), {Name: "Idempotency-Key", In: "header", Schema: idSchema,
				Description: "The call's id, unique in its turn; made up if absent. The same call under the same id is done once."}},
			Body:      &Body{ContentType: "application/json", Schema: "Arguments", Optional: true},
			Responses: answers, Long: true, Handle: s.callTool},
		{Method: "GET", Pattern: "/v1/calls/{callId}", Access: TurnToken, ID: "getCall", Summary: "The result of a call, whole, or where it stands.",
			Responses: answers, Handle: s.getCall},
		{Method: "POST", Pattern: "/v1/calls/{callId}/cancel", Access: TurnToken, ID: "cancelCall",
			Summary: "Cancel a call. One that is done answers with its result.",
			Body:    &Body{ContentType: "application/json", Schema: "Empty", Optional: true}, Responses: answers, Handle: s.cancelCall},
		{Method: "GET", Pattern: "/v1/events", Access: TurnToken, ID: "watchTurn", Summary: "Each result and progress of the turn, as server-sent events.",
			Responses: []Response{{Status: 200, Description: "Events named result and progress.", ContentType: "text/event-stream"}},
			Long:      true, Handle: s.events},
	}
}

func waitParam() Param {
	return Param{Name: "Prefer", In: "header", Description: "wait=N: how many seconds to wait for the result, 0 to 600; 60 if not given."}
}

type toolView struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"inputSchema"`
}

func (s *Server) listTools(w http.ResponseWriter, r *http.Request) error {
	tools, err := s.cfg.Dispatcher.Tools(r.Context(), bearer(r))
	if err != nil {
		return err
	}
	views := make([]toolView, len(tools))
	for i, t := range tools {
		views[i] = toolView{t.Name, t.Description, t.Schema}
	}
	return writeJSON(w, http.StatusOK, struct {
		Tools []toolView `json:"tools"`
	}{views})
}

func (s *Server) callTool(w http.ResponseWriter, r *http.Request) error {
	note, tool := noteOf(r), r.PathValue("tool")
	if len(tool) > maxToolName || !utf8.ValidString(tool) || strings.ContainsRune(tool, 0) {
		return invalid("The name of the tool in the path must be UTF-8 text of at most %d bytes, without U+0000.", maxToolName)
	}
	callID, err := idempotencyKey(r)
	if err != nil {
		return err
	}
	note.call, note.tool = callID, tool
	wait, asked := preferredWait(r.Header.Values("Prefer"))
	// A body over the limit goes on as its beginning, which is over the limit as well: the dispatcher refuses it, in words
	// for the model.
	arguments, err := s.readAll(w, r, s.cfg.Limits.MessageBytes)
	if err != nil {
		return err
	}
	ctx, end := s.waiting(r.Context())
	defer end()
	a, err := s.cfg.Dispatcher.Call(ctx, bearer(r), dispatch.Request{CallID: callID, Tool: tool, Arguments: arguments}, wait)
	if err != nil {
		return err
	}
	if asked {
		w.Header().Set("Preference-Applied", "wait="+strconv.Itoa(int(wait/time.Second)))
	}
	return answer(w, note, a)
}

// idempotencyKey gives the call's id, made up where the client has none.
func idempotencyKey(r *http.Request) (string, error) {
	keys := r.Header.Values("Idempotency-Key")
	if len(keys) == 0 {
		return uuid.NewString(), nil
	}
	if len(keys) > 1 || !call.ValidID(keys[0]) {
		return "", invalid(`The header Idempotency-Key must be one id: 1 to 64 of the characters A-Z, a-z, 0-9, "_" and "-".`)
	}
	return keys[0], nil
}

// preferredWait reads the preference wait=N (RFC 7240). What cannot be read is no preference; more than the most is the
// most.
func preferredWait(headers []string) (wait time.Duration, asked bool) {
	for _, h := range headers {
		for preference := range strings.SplitSeq(h, ",") {
			preference, _, _ = strings.Cut(preference, ";")
			name, value, _ := strings.Cut(preference, "=")
			if !strings.EqualFold(strings.TrimSpace(name), "wait") {
				continue
			}
			value = strings.Trim(strings.TrimSpace(value), `"`)
			if value == "" || strings.Trim(value, "0123456789") != "" {
				return defaultWait, false
			}
			n, err := strconv.Atoi(value)
			if err != nil || n > int(maxWait/time.Second) {
				return maxWait, true
			}
			return time.Duration(n) * time.Second, true
		}
	}
	return defaultWait, false
}

// pending is where a call stands that is not done.
type pending struct {
	CallID string `json:"callId"`
	Seq    int64  `json:"seq,omitempty"`
	State  string `json:"state"`
}

func answer(w http.ResponseWriter, n *note, a dispatch.Answer) error {
	if a.Result == nil {
		w.Header().Set("Location", "/v1/calls/"+a.CallID)
		return writeJSON(w, http.StatusAccepted, pending{a.CallID, a.Seq, a.State})
	}
	n.conversation, n.turn, n.call = a.Result.ConversationID, a.Result.TurnID, a.Result.CallID
	n.tool, n.code = a.Result.Tool, string(a.Result.Code)
	if a.Told != "" {
		writeBody(w, http.StatusOK, a.Told)
		return nil
	}
	return writeJSON(w, http.StatusOK, a.Result)
}

func (s *Server) getCall(w http.ResponseWriter, r *http.Request) error {
	a, err := s.cfg.Dispatcher.Lookup(r.Context(), bearer(r), r.PathValue("callId"))
	if err != nil {
		return err
	}
	return answer(w, noteOf(r), a)
}

func (s *Server) cancelCall(w http.ResponseWriter, r *http.Request) error {
	if err := s.readJSON(w, r, "Empty", &struct{}{}); err != nil {
		return err
	}
	a, err := s.cfg.Dispatcher.Cancel(r.Context(), bearer(r), r.PathValue("callId"))
	if err != nil {
		return err
	}
	return answer(w, noteOf(r), a)
}
