package httpapi

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"

	"treeline/internal/artifact"
	"treeline/internal/call"
	"treeline/internal/skill"
	"treeline/internal/store"
	"treeline/internal/strictjson"
	"treeline/internal/upload"
	"treeline/internal/workspace"
)

// maxResult is how many bytes the body that puts a stored result may have.
const maxResult = 16 << 20

// Stores keep what turns may bring, and what lasts.
type Stores struct {
	Uploads   *upload.Store
	Skills    *skill.Store
	Artifacts *artifact.Store
	pool      *pgxpool.Pool
	// decoding is held while a result is judged, which takes a multiple of its size in memory.
	decoding chan struct{}
}

// NewStores makes the stores over a migrated database.
func NewStores(pool *pgxpool.Pool, limits workspace.Limits) Stores {
	return Stores{Uploads: upload.New(pool), Skills: skill.New(pool, limits.SkillBytes), Artifacts: artifact.New(pool), pool: pool,
		decoding: make(chan struct{}, 1)}
}

func (s *Server) uploadRoutes() []Route {
	raw := "application/octet-stream"
	answers := func(schema string) []Response {
		return []Response{{Status: 200, Description: "It is replaced, or was so already.", ContentType: "application/json", Schema: schema},
			{Status: 201, Description: "It is new.", ContentType: "application/json", Schema: schema}}
	}
	return []Route{
		{Method: "PUT", Pattern: "/v1/uploads/{id}", Access: PortalKey, ID: "putUpload", Summary: "Put a file that runs may mount by its id.",
			Params: []Param{{Name: "collection", In: "query", Description: "Whose callers may name it. Without one, only turns to whose knowledge it is bound."},
				{Name: "name", In: "query", Description: "The file's name: the id if not given."}},
			Body: &Body{ContentType: raw}, Responses: answers("Upload"), Handle: s.putUpload},
		{Method: "PUT", Pattern: "/v1/uploads/{id}/passages", Access: PortalKey, ID: "putPassages", Summary: "Put the passages of an upload, in their order.",
			Body:      &Body{ContentType: "application/json", Schema: "Passages"},
			Responses: []Response{{Status: 200, Description: "They are put.", ContentType: "application/json", Schema: "PutPassages"}}, Handle: s.putPassages},
		{Method: "PUT", Pattern: "/v1/skills/{name}", Access: PortalKey, ID: "putSkill", Summary: "Put a skill: a zip archive that holds SKILL.md.",
			Body: &Body{ContentType: "application/zip"}, Responses: answers("Skill"), Handle: s.putSkill},
		{Method: "PUT", Pattern: "/v1/conversations/{id}/results/{ref}", Access: PortalKey, ID: "putResult",
			Summary: "Keep the result of a tool that runs elsewhere. It does not change any more.",
			Body:    &Body{ContentType: "application/json", Schema: "StoredResult"}, Responses: answers("PutResult"), Handle: s.putResult},
	}
}

// query reads the parameters of a request; one that is spelled wrong is not taken for one that is not there.
func query(r *http.Request) (url.Values, error) {
	q, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, invalid("The query of the URL cannot be read.")
	}
	return q, nil
}

// put answers a PUT that came to err: 201 where it made something.
func put(w http.ResponseWriter, made bool, view any, err error) error {
	if err != nil {
		return err
	}
	status := http.StatusOK
	if made {
		status = http.StatusCreated
	}
	return writeJSON(w, status, view)
}

// tooLong refuses a body that says itself that it is longer than it may be.
func tooLong(r *http.Request, most int64) error {
	if r.ContentLength > most {
		return &http.MaxBytesError{Limit: most}
	}
	return nil
}

type uploadView struct {
	ID         string `json:"id"`
	Collection string `json:"collection"`
	Name       string `json:"name"`
	Bytes      int64  `json:"bytes"`
	SHA256     string `json:"sha256"`
}

func (s *Server) putUpload(w http.ResponseWriter, r *http.Request) error {
	q, err := query(r)
	if err != nil {
		return err
	}
	if err := tooLong(r, upload.MaxBytes); err != nil {
		return err
	}
	u, made, err := s.cfg.Stores.Uploads.Put(r.Context(), r.PathValue("id"), q.Get("collection"), q.Get("name"), r.Body)
	return put(w, made, uploadView{u.ID, u.Collection, u.Name, u.Bytes, hex.EncodeToString(u.SHA256[:])}, err)
}

func (s *Server) putPassages(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	if err := tooLong(r, upload.MaxPassages); err != nil {
		return err
	}
	n, err := s.cfg.Stores.Uploads.PutPassages(r.Context(), id, r.Body)
	return put(w, false, struct {
		ID       string `json:"id"`
		Passages int    `json:"passages"`
	}{id, n}, err)
}

type skillView struct {
	Name  string          `json:"name"`
	Files []skillFileView `json:"files"`
	Bytes int64           `json:"bytes"`
	// Mountable says that runs may name it: it is not larger than they take.
	Mountable bool `json:"mountable"`
}

type skillFileView struct {
	Path  string `json:"path"`
	Bytes int64  `json:"bytes"`
}

func (s *Server) putSkill(w http.ResponseWriter, r *http.Request) error {
	sk, made, err := s.cfg.Stores.Skills.Put(r.Context(), r.PathValue("name"), r.Body)
	view := skillView{Name: sk.Name, Bytes: sk.Bytes(), Mountable: sk.Bytes() <= s.cfg.Limits.SkillBytes}
	for _, f := range sk.Files {
		view.Files = append(view.Files, skillFileView{f.Path, f.Bytes})
	}
	return put(w, made, view, err)
}

func (s *Server) putResult(w http.ResponseWriter, r *http.Request) error {
	id, ref := r.PathValue("id"), r.PathValue("ref")
	if strings.HasPrefix(ref, call.ReservedPrefix) {
		return invalid("Refs that begin with %q are Treeline's own; choose another.", call.ReservedPrefix)
	}
	if _, err := s.open(r.Context(), id); err != nil {
		return err
	}
	result, err := s.readResult(w, r)
	if err != nil {
		return err
	}
	result.Ref = ref
	made, err := store.PutResult(r.Context(), s.cfg.Stores.pool, id, result)
	if errors.Is(err, store.ErrOtherResult) {
		return &Problem{Status: http.StatusConflict, Code: "result_exists", Detail: "The ref has another result already, and a stored result does not change. Nothing was stored."}
	}
	return put(w, made, struct {
		Ref string `json:"ref"`
	}{ref}, err)
}

// readResult reads a body of StoredResult; its output keeps its bytes.
func (s *Server) readResult(w http.ResponseWriter, r *http.Request) (store.StoredResult, error) {
	if err := tooLong(r, maxResult); err != nil {
		return store.StoredResult{}, err
	}
	b, err := s.readAll(w, r, maxResult)
	if err != nil {
		return store.StoredResult{}, err
	}
	if len(b) > maxResult {
		return store.StoredResult{}, &http.MaxBytesError{Limit: maxResult}
	}
	return s.cfg.Stores.decodeResult(r.Context(), b)
}

func (s Stores) decodeResult(ctx context.Context, b []byte) (store.StoredResult, error) {
	select {
	case s.decoding <- struct{}{}:
		defer func() { <-s.decoding }()
	case <-ctx.Done():
		return store.StoredResult{}, ctx.Err()
	}
	value, err := strictjson.Decode(b, strictjson.DefaultLimits())
	if err != nil {
		return store.StoredResult{}, invalid("The body is not the JSON that was expected: %s", err)
	}
	if err := validate("StoredResult", value); err != nil {
		return store.StoredResult{}, err
	}
	var body struct {
		ToolName string          `json:"toolName"`
		IsError  bool            `json:"isError"`
		Output   json.RawMessage `json:"output"`
	}
	if err := json.Unmarshal(b, &body); err != nil {
		return store.StoredResult{}, fmt.Errorf("read a result that was judged good: %w", err)
	}
	return store.StoredResult{ToolName: body.ToolName, IsError: body.IsError, Output: body.Output}, nil
}
