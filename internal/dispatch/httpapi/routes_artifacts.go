package httpapi

import (
	"archive/zip"
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"treeline/internal/artifact"
)

func (s *Server) artifactRoutes() []Route {
	raw := "application/octet-stream"
	version := Param{Name: "version", In: "query", Description: "Which version: the newest if not given.", Schema: `{"type":"integer","minimum":1}`}
	answer := func(status int, what string) Response {
		return Response{Status: status, Description: what, ContentType: "application/json", Schema: "Artifact"}
	}
	return []Route{
		{Method: "PUT", Pattern: "/v1/artifacts/{id}", Access: PortalKey, ID: "putArtifact",
			Summary: "Put an artifact, or a new version of one that is there. Of that, what is not given stays, and the owner does not change.",
			Params: []Param{{Name: "kind", In: "query", Description: "What it is.", Schema: `{"enum":["document","chart","web","text","file"]}`},
				{Name: "title", In: "query", Description: "What people see: the id if not given. A file's ending is taken from it."},
				{Name: "owner", In: "query", Description: "The user whose it is."},
				{Name: "department", In: "query", Description: "Who is billed for the version's bytes."}},
			Body: &Body{ContentType: raw}, Responses: []Response{answer(200, "There is a new version, or the newest was equal."), answer(201, "It is new.")}, Handle: s.putArtifact},
		{Method: "GET", Pattern: "/v1/artifacts/{id}", Access: PortalKey, ID: "getArtifact", Summary: "The bytes of a version, or a range of them, as an attachment.",
			Params: []Param{version},
			Responses: []Response{{Status: 200, Description: "The bytes.", ContentType: raw}, {Status: 206, Description: "A range of them.", ContentType: raw},
				{Status: 304, Description: "The ETag still holds."}}, Handle: s.getArtifact},
		{Method: "GET", Pattern: "/v1/artifacts/{id}/source", Access: PortalKey, ID: "getArtifactSource",
			Summary: "What a version was made from, as a zip archive: source.json, the code as code.py, the files below files/.",
			Params:  []Param{version}, Responses: []Response{{Status: 200, Description: "The archive.", ContentType: "application/zip"}}, Handle: s.artifactSource},
		{Method: "PUT", Pattern: "/v1/artifacts/{id}/shares", Access: PortalKey, ID: "putShares", Summary: "Share an artifact with these, and with nobody else.",
			Body:      &Body{ContentType: "application/json", Schema: "Shares"},
			Responses: []Response{{Status: 200, Description: "It is shared so.", ContentType: "application/json", Schema: "Shared"}}, Handle: s.putShares},
	}
}

type artifactView struct {
	ArtifactID string        `json:"artifactId"`
	Version    int           `json:"version"`
	Kind       artifact.Kind `json:"kind"`
	Title      string        `json:"title"`
	Bytes      int64         `json:"bytes"`
	SHA256     string        `json:"sha256"`
}

func (s *Server) putArtifact(w http.ResponseWriter, r *http.Request) error {
	q, err := query(r)
	if err != nil {
		return err
	}
	if err := tooLong(r, artifact.MaxFile); err != nil {
		return err
	}
	a, made, err := s.cfg.Stores.Artifacts.Put(r.Context(), artifact.Put{ID: r.PathValue("id"), Kind: artifact.Kind(q.Get("kind")), Title: q.Get("title"),
		Owner: q.Get("owner"), Department: q.Get("department")}, r.Body)
	if errors.Is(err, artifact.ErrOtherOwner) {
		return &Problem{Status: http.StatusConflict, Code: "owner_fixed", Detail: "The artifact is there and has another owner, which does not change. Nothing was stored."}
	}
	return put(w, made, artifactView{a.ID, a.Version, a.Kind, a.Title, a.Bytes, hex.EncodeToString(a.SHA256[:])}, err)
}

// artifact gives the version that a request names.
func (s *Server) artifact(r *http.Request) (artifact.Details, error) {
	q, err := query(r)
	if err != nil {
		return artifact.Details{}, err
	}
	version := 0
	if q.Has("version") {
		n, err := strconv.ParseInt(q.Get("version"), 10, 32)
		if err != nil || n < 1 {
			return artifact.Details{}, invalid("The query parameter version must be a number from 1.")
		}
		version = int(n)
	}
	return s.cfg.Stores.Artifacts.Get(r.Context(), r.PathValue("id"), version)
}

func (s *Server) getArtifact(w http.ResponseWriter, r *http.Request) error {
	d, err := s.artifact(r)
	if err != nil {
		return err
	}
	body := s.cfg.Stores.Artifacts.Reader(r.Context(), d.Artifact)
	head := make([]byte, min(512, d.Bytes))
	// Read before an answer has begun, so that bytes that cannot be read are told.
	if _, err := io.ReadFull(body, head); err != nil && d.Bytes > 0 {
		return fmt.Errorf("read the artifact: %w", err)
	}
	attachment(w.Header(), d.Kind.FileName(d.Name), d.Kind.MIMEType(d.Name, head))
	w.Header().Set("ETag", `"`+hex.EncodeToString(d.SHA256[:])+`"`)
	w.Header().Set("Treeline-Version", strconv.Itoa(d.Version))
	http.ServeContent(w, r, "", time.Time{}, body) // from the beginning again
	return nil
}

// sourceView is the source.json of an artifact's source.
type sourceView struct {
	ArtifactID string `json:"artifactId"`
	Version    int    `json:"version"`
	// CallID and Tool name the call that last made the file.
	CallID string `json:"callId"`
	Tool   string `json:"tool"`
	// Conversation and Seq name the call that saved it.
	Conversation string    `json:"conversationId,omitempty"`
	Seq          int64     `json:"seq,omitempty"`
	MadeBy       string    `json:"madeBy,omitempty"`
	Department   string    `json:"department"`
	At           time.Time `json:"at"`
}

func (s *Server) artifactSource(w http.ResponseWriter, r *http.Request) error {
	d, err := s.artifact(r)
	if err != nil {
		return err
	}
	files, err := s.cfg.Stores.Artifacts.Sources(r.Context(), d.ID, d.Version)
	if err != nil {
		return err
	}
	about, err := json.MarshalIndent(sourceView{d.ID, d.Version, d.CallID, d.CallTool, d.Conversation, d.Seq, d.MadeBy, d.Department, d.CreatedAt}, "", "  ")
	if err != nil {
		return fmt.Errorf("describe the source: %w", err)
	}
	attachment(w.Header(), d.ID+"-source.zip", "application/zip")
	w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodHead {
		return nil
	}
	z := zip.NewWriter(w)
	if err := s.packSource(r, z, d, about, files); err != nil {
		s.cfg.Log.Warn().Err(err).Str("artifact", d.ID).Msg("source cut off")
		panic(http.ErrAbortHandler) // the one way to tell a client that a chunked answer is not whole
	}
	return nil
}

func (s *Server) packSource(r *http.Request, z *zip.Writer, d artifact.Details, about []byte, files []artifact.Source) error {
	add := func(name string, content io.Reader) error {
		entry, err := z.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Deflate, Modified: d.CreatedAt})
		if err == nil {
			_, err = io.Copy(entry, content)
		}
		if err != nil {
			return fmt.Errorf("put %q in the source: %w", name, err)
		}
		return nil
	}
	if err := add("source.json", bytes.NewReader(about)); err != nil {
		return err
	}
	if d.Code != nil {
		if err := add("code.py", bytes.NewReader(d.Code)); err != nil {
			return err
		}
	}
	for _, f := range files {
		if err := add("files/"+f.Path, s.cfg.Stores.Artifacts.Reader(r.Context(), artifact.Artifact{Content: f.Content})); err != nil {
			return err
		}
	}
	return z.Close()
}

type shareView struct {
	User       string `json:"user,omitempty"`
	Department string `json:"department,omitempty"`
	Right      string `json:"right"`
}

func (s *Server) putShares(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	var shares []artifact.Share
	if err := s.readJSON(w, r, "Shares", &shares); err != nil {
		return err
	}
	if err := s.cfg.Stores.Artifacts.SetShares(r.Context(), id, shares); err != nil {
		return err
	}
	view := []shareView{}
	for _, sh := range shares {
		view = append(view, shareView(sh))
	}
	return writeJSON(w, http.StatusOK, struct {
		ArtifactID string      `json:"artifactId"`
		Shares     []shareView `json:"shares"`
	}{id, view})
}
