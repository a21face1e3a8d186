package httpapi

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"treeline/internal/call"
	"treeline/internal/catalogue"
	"treeline/internal/dispatch"
	"treeline/internal/store"
)

const (
	// defaultPage is how many steps or changes a page has unless limit says otherwise; maxPage the most it may say.
	defaultPage = 200
	maxPage     = 1000
	idSchema    = `{"type":"string","pattern":"^[A-Za-z0-9_-]{1,64}$"}`
)

func (s *Server) historyRoutes() []Route {
	page := []Param{
		{Name: "limit", In: "query", Description: "How many to give: 200 if not given.", Schema: `{"type":"integer","minimum":1,"maximum":1000}`},
		{Name: "after", In: "query", Description: "The next of the page before."},
	}
	return []Route{
		{Method: "GET", Pattern: "/v1/conversations/{id}/steps", Access: PortalKey, ID: "listSteps", Summary: "The trace: one step for each call, oldest first.",
			Params:    append([]Param{{Name: "turn", In: "query", Description: "Only the steps of this turn.", Schema: idSchema}}, page...),
			Responses: []Response{{Status: 200, Description: "A page of steps; next, if there are more.", ContentType: "application/json", Schema: "Steps"}},
			Handle:    s.steps},
		{Method: "GET", Pattern: "/v1/conversations/{id}/changes", Access: PortalKey, ID: "listChanges", Summary: "The history: who changed which file, by which call, when.",
			Params:    page,
			Responses: []Response{{Status: 200, Description: "A page of changes; next, if there are more.", ContentType: "application/json", Schema: "Changes"}},
			Handle:    s.changes},
		{Method: "POST", Pattern: "/v1/conversations/{id}/revert", Access: PortalKey, ID: "revert",
			Summary: "Put a file, or the whole tree, back to what it was before a call. That is a change itself, and can be undone.",
			Params:  []Param{actorParam(), waitParam()}, Body: &Body{ContentType: "application/json", Schema: "Revert"},
			Responses: []Response{{Status: 200, Description: "It is put back.", ContentType: "application/json", Schema: "Changed"}, later()}, Long: true, Handle: s.revert},
	}
}

// pageOf reads limit and the cursor into after, which keeps its zero value for the first page.
func pageOf(r *http.Request, after any) (limit int, err error) {
	q := r.URL.Query()
	limit = defaultPage
	if text := q.Get("limit"); text != "" {
		if limit, err = strconv.Atoi(text); err != nil || limit < 1 || limit > maxPage {
			return 0, invalid("The query parameter limit must be a number from 1 to %d.", maxPage)
		}
	}
	if text := q.Get("after"); text != "" {
		b, err := base64.RawURLEncoding.DecodeString(text)
		if err != nil || json.Unmarshal(b, after) != nil {
			return 0, invalid("The query parameter after must be what next was in the page before.")
		}
	}
	return limit, nil
}

func cursor(v any) (string, error) {
	b, err := json.Marshal(v)
	return base64.RawURLEncoding.EncodeToString(b), err
}

type stepView struct {
	TurnID     string     `json:"turnId"`
	CallID     string     `json:"callId"`
	Seq        int64      `json:"seq"`
	Kind       string     `json:"kind"`
	Tool       string     `json:"tool"`
	State      string     `json:"state"`
	Status     string     `json:"status"`
	Code       string     `json:"code"`
	Paths      []string   `json:"paths"`
	Attempt    int        `json:"attempt"`
	Actor      string     `json:"actor,omitempty"`
	AcceptedAt time.Time  `json:"acceptedAt"`
	StartedAt  *time.Time `json:"startedAt,omitempty"`
	FinishedAt *time.Time `json:"finishedAt,omitempty"`
}

type stepsCursor struct {
	At         time.Time `json:"t"`
	Turn, Call string
}

func (s *Server) steps(w http.ResponseWriter, r *http.Request) error {
	id, turnID := r.PathValue("id"), r.URL.Query().Get("turn")
	var from stepsCursor
	limit, err := pageOf(r, &from)
	if err != nil {
		return err
	}
	if turnID != "" && !call.ValidID(turnID) {
		return invalid("The query parameter turn must be the id of a turn.")
	}
	if from.Turn != "" && !call.ValidID(from.Turn) || from.Call != "" && !call.ValidID(from.Call) || from.At.Year() > 9999 {
		return invalid("The query parameter after must be what next was in the page before.")
	}
	if _, err := s.conversation(r.Context(), id); err != nil {
		return err
	}
	list, err := s.cfg.Library.Steps(r.Context(), id, store.StepsAfter{At: from.At, Turn: from.Turn, Call: from.Call, OfTurn: turnID}, limit+1)
	if err != nil {
		return err
	}
	out := struct {
		Steps []stepView `json:"steps"`
		Next  string     `json:"next,omitempty"`
	}{Steps: []stepView{}}
	for i, v := range list {
		if i == limit {
			last := list[i-1]
			if out.Next, err = cursor(stepsCursor{last.AcceptedAt, last.TurnID, last.CallID}); err != nil {
				return err
			}
			break
		}
		out.Steps = append(out.Steps, stepView{v.TurnID, v.CallID, v.Seq, v.Kind, v.Tool, v.State, v.Status, v.Code, v.Paths, v.Attempt,
			v.Actor, v.AcceptedAt, v.StartedAt, v.FinishedAt})
	}
	return writeJSON(w, http.StatusOK, out)
}

type sideView struct {
	SHA256 string `json:"sha256"`
	Bytes  int64  `json:"bytes"`
}

type changeView struct {
	Seq    int64      `json:"seq"`
	Path   string     `json:"path"`
	Op     string     `json:"op"`
	Before *sideView  `json:"before"`
	After  *sideView  `json:"after"`
	TurnID string     `json:"turnId"`
	CallID string     `json:"callId"`
	Tool   string     `json:"tool"`
	Actor  string     `json:"actor,omitempty"`
	User   string     `json:"user,omitempty"`
	At     *time.Time `json:"at"`
}

type changesCursor struct {
	Seq  int64
	Path string
}

func (s *Server) changes(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	var from changesCursor
	limit, err := pageOf(r, &from)
	if err != nil {
		return err
	}
	if !plainText(from.Path) {
		return invalid("The query parameter after must be what next was in the page before.")
	}
	if _, err := s.readable(r.Context(), id); err != nil {
		return err
	}
	list, err := s.cfg.Library.Changes(r.Context(), id, store.ChangesAfter{Seq: from.Seq, Path: from.Path}, limit+1)
	if err != nil {
		return err
	}
	out := struct {
		Changes []changeView `json:"changes"`
		Next    string       `json:"next,omitempty"`
	}{Changes: []changeView{}}
	for i, c := range list {
		if i == limit {
			if out.Next, err = cursor(changesCursor{list[i-1].Seq, list[i-1].Path}); err != nil {
				return err
			}
			break
		}
		out.Changes = append(out.Changes, changeView{c.Seq, c.Path, c.Op, side(c.BeforeSHA256, c.BeforeBytes), side(c.AfterSHA256, c.AfterBytes),
			c.TurnID, c.CallID, c.Tool, c.Actor, c.User, c.At})
	}
	return writeJSON(w, http.StatusOK, out)
}

func side(sum string, bytes int64) *sideView {
	if sum == "" {
		return nil
	}
	return &sideView{sum, bytes}
}

func (s *Server) revert(w http.ResponseWriter, r *http.Request) error {
	var b struct {
		BeforeSeq int64   `json:"beforeSeq"`
		Path      *string `json:"path"`
	}
	if err := s.readJSON(w, r, "Revert", &b); err != nil {
		return err
	}
	actor, err := actorOf(r)
	if err != nil {
		return err
	}
	id := r.PathValue("id")
	if _, err := s.open(r.Context(), id); err != nil {
		return err
	}
	arguments := map[string]any{"beforeSeq": b.BeforeSeq}
	if b.Path != nil {
		arguments["path"] = *b.Path
	}
	res, err := s.portal(r, dispatch.PortalRequest{Conversation: id, Tool: catalogue.PortalRevertTool, Actor: actor, Arguments: arguments})
	return answerChange(w, res, err)
}
