package httpapi

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"treeline/internal/call"
	"treeline/internal/catalogue"
	"treeline/internal/dispatch"
	"treeline/internal/store"
	"treeline/internal/workspace"
)

const (
	filePattern = "/v1/conversations/{id}/files/{path...}"
	// maxActor is the longest name, in bytes, of who acts.
	maxActor = 256
)

func actorParam() Param {
	return Param{Name: "Treeline-Actor", In: "header", Description: "Who acts; kept in the history."}
}

func (s *Server) fileRoutes() []Route {
	raw := "application/octet-stream"
	return []Route{
		{Method: "GET", Pattern: "/v1/conversations/{id}/files", Access: PortalKey, ID: "listFiles", Summary: "The files of the workspace, by path.",
			Responses: []Response{{Status: 200, Description: "The files.", ContentType: "application/json", Schema: "Files"}}, Handle: s.listFiles},
		{Method: "GET", Pattern: filePattern, Access: PortalKey, ID: "getFile", Summary: "The bytes of a file, or a range of them, as an attachment.",
			Responses: []Response{{Status: 200, Description: "The bytes.", ContentType: raw}, {Status: 206, Description: "A range of them.", ContentType: raw},
				{Status: 304, Description: "The ETag still holds."}}, Long: true, Handle: s.getFile},
		{Method: "PUT", Pattern: filePattern, Access: PortalKey, ID: "putFile", Summary: "Put a file in the workspace, in its turn among the calls.",
			Params: []Param{actorParam(), waitParam()}, Body: &Body{ContentType: raw},
			Responses: []Response{{Status: 200, Description: "The file is replaced, or was so already.", ContentType: "application/json", Schema: "Written"},
				{Status: 201, Description: "The file is new.", ContentType: "application/json", Schema: "Written"}, later()}, Long: true, Handle: s.putFile},
		{Method: "DELETE", Pattern: filePattern, Access: PortalKey, ID: "deleteFile", Summary: "Remove a file from the workspace, in its turn among the calls.",
			Params:    []Param{actorParam(), waitParam()},
			Responses: []Response{{Status: 200, Description: "The file is gone.", ContentType: "application/json", Schema: "Changed"}, later()}, Long: true, Handle: s.deleteFile},
		{Method: "GET", Pattern: "/v1/conversations/{id}/archive", Access: PortalKey, ID: "getArchive", Summary: "The whole workspace as a zip archive.",
			Responses: []Response{{Status: 200, Description: "The archive.", ContentType: "application/zip"}}, Long: true, Handle: s.archive},
	}
}

type fileView struct {
	Path      string    `json:"path"`
	Bytes     int64     `json:"bytes"`
	Revision  int64     `json:"revision"`
	SHA256    string    `json:"sha256"`
	MIMEType  string    `json:"mimeType"`
	UpdatedAt time.Time `json:"updatedAt"`
}

func (s *Server) listFiles(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	if _, err := s.readable(r.Context(), id); err != nil {
		return err
	}
	files, err := s.cfg.Library.Files(r.Context(), id)
	if err != nil {
		return err
	}
	out := struct {
		Files      []fileView `json:"files"`
		TotalBytes int64      `json:"totalBytes"`
		TotalFiles int        `json:"totalFiles"`
	}{Files: make([]fileView, len(files)), TotalFiles: len(files)}
	for i, f := range files {
		out.Files[i] = fileView{f.Path, f.Bytes, f.Revision, hex.EncodeToString(f.SHA256[:]), f.MIMEType, f.UpdatedAt}
		out.TotalBytes += f.Bytes
	}
	return writeJSON(w, http.StatusOK, out)
}

// filePath gives the path that a request names, composed.
func filePath(r *http.Request) (string, error) {
	p, refusal := workspace.Path(r.PathValue("path"))
	if refusal != nil {
		return "", refusal
	}
	return p, nil
}

func (s *Server) getFile(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	path, err := filePath(r)
	if err != nil {
		return err
	}
	if _, err := s.readable(r.Context(), id); err != nil {
		return err
	}
	f, err := s.file(r.Context(), id, path)
	if err != nil {
		return err
	}
	body := newContent(r.Context(), s.cfg.Library, id, f)
	if err := body.check(); err != nil {
		return err
	}
	return serveFile(w, r, f, body)
}

func (s *Server) file(ctx context.Context, id, path string) (store.File, error) {
	f, err := s.cfg.Library.File(ctx, id, path)
	if errors.Is(err, store.ErrAbsent) {
		return f, notFound(call.PathNotFound, "There is no file of this path in the workspace.")
	}
	return f, err
}

// written is what a person's change came to.
type written struct {
	Seq      int64  `json:"seq"`
	Path     string `json:"path"`
	Bytes    int64  `json:"bytes"`
	SHA256   string `json:"sha256"`
	Revision int64  `json:"revision"`
}

func (s *Server) putFile(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	path, err := filePath(r)
	if err != nil {
		return err
	}
	actor, err := actorOf(r)
	if err != nil {
		return err
	}
	if _, err := s.open(r.Context(), id); err != nil {
		return err
	}
	staged, err := s.stage(w, r, s.cfg.Limits.WorkspaceBytes)
	if err != nil {
		return err
	}
	sum := hex.EncodeToString(staged.SHA256[:])
	res, err := s.portal(r, dispatch.PortalRequest{Conversation: id, Tool: catalogue.PortalPutTool, Actor: actor,
		Arguments: catalogue.PortalPut{Path: path, Staged: staged.ID, Bytes: staged.Bytes, SHA256: sum}})
	if err == nil || isRefusal(err) {
		if err := s.cfg.Library.Unstage(r.Context(), staged.ID); err != nil {
			s.cfg.Log.Warn().Err(err).Msg("staged bytes are left for the sweeper")
		}
	}
	if errors.Is(err, dispatch.ErrNotDone) {
		return writeJSON(w, http.StatusAccepted, changed{res.Seq})
	}
	if err != nil {
		return err
	}
	var data struct {
		Revisions map[string]int64 `json:"revisions"`
	}
	if err := json.Unmarshal(res.Data, &data); err != nil {
		return fmt.Errorf("read the result of an upload: %w", err)
	}
	out := written{Seq: res.Seq, Path: path, Bytes: staged.Bytes, SHA256: sum, Revision: data.Revisions[path]}
	status := http.StatusOK
	if len(res.Changes.Created) > 0 {
		status = http.StatusCreated
	}
	return writeJSON(w, status, out)
}

// stage reads the body into the database, at most limit bytes of it.
func (s *Server) stage(w http.ResponseWriter, r *http.Request, limit int64) (store.Upload, error) {
	full := call.Refuse(call.WorkspaceFull, "The file is larger than the %d bytes that a whole workspace may hold.", limit)
	if r.ContentLength > limit {
		return store.Upload{}, full
	}
	staged, err := s.cfg.Library.Stage(r.Context(), http.MaxBytesReader(w, r.Body, limit))
	var tooLong *http.MaxBytesError
	if errors.As(err, &tooLong) {
		return store.Upload{}, full
	}
	return staged, err
}

// portal makes a person's change. A result that is not ok comes as its refusal.
func (s *Server) portal(r *http.Request, request dispatch.PortalRequest) (call.Result, error) {
	request.Wait, _ = preferredWait(r.Header.Values("Prefer"))
	ctx, end := s.waiting(r.Context())
	defer end()
	res, err := s.cfg.Dispatcher.Portal(ctx, request)
	if err != nil {
		return res, err
	}
	n := noteOf(r)
	n.turn, n.call, n.tool, n.code = res.TurnID, res.CallID, res.Tool, string(res.Code)
	if res.Status == call.OK {
		return res, nil
	}
	refusal := &call.Refusal{Code: res.Code}
	for _, c := range res.Content {
		refusal.Text += c.Text
	}
	return res, refusal
}

func isRefusal(err error) bool {
	var refusal *call.Refusal
	return errors.As(err, &refusal)
}

// actorOf gives who acts, "" where the request does not say.
func actorOf(r *http.Request) (string, error) {
	actor := r.Header.Get("Treeline-Actor")
	if !plainText(actor) || len(actor) > maxActor {
		return "", invalid("The header Treeline-Actor must be UTF-8 text of at most %d bytes, without control characters.", maxActor)
	}
	return actor, nil
}

// plainText reports whether s can be kept as text: valid UTF-8 without control characters.
func plainText(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl)
}

type changed struct {
	Seq int64 `json:"seq"`
}

func (s *Server) deleteFile(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	path, err := filePath(r)
	if err != nil {
		return err
	}
	actor, err := actorOf(r)
	if err != nil {
		return err
	}
	if _, err := s.open(r.Context(), id); err != nil {
		return err
	}
	res, err := s.portal(r, dispatch.PortalRequest{Conversation: id, Tool: catalogue.PortalDeleteTool, Actor: actor,
		Arguments: catalogue.PortalDelete{Path: path}})
	return answerChange(w, res, err)
}

// answerChange answers with the place of a person's change in the order: 202 where it still waits for the calls before it.
func answerChange(w http.ResponseWriter, res call.Result, err error) error {
	if errors.Is(err, dispatch.ErrNotDone) {
		return writeJSON(w, http.StatusAccepted, changed{res.Seq})
	}
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, changed{res.Seq})
}

// later is the answer to a change that waits longer than the client does.
func later() Response {
	return Response{Status: 202, Description: "It is accepted, and waits for the calls before it.", ContentType: "application/json", Schema: "Changed"}
}
