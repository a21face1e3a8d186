package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"treeline/internal/call"
)

// Access says whose request a route takes.
type Access int

const (
	// Anyone needs no credential.
	Anyone Access = iota
	// TurnToken is a turn's bearer token, which the dispatcher judges.
	TurnToken
	// PortalKey is the portal's key; for GET the viewer's key too.
	PortalKey
)

// Param is a query or header parameter of a route. Parameters of the path are taken from its pattern.
type Param struct {
	Name, In, Description string
	Required              bool
	// Schema is a JSON Schema, as JSON; empty is a string.
	Schema string
}

// Body describes a body: of Schema, the name of a component, or raw bytes if that is empty.
type Body struct {
	ContentType, Schema string
	Optional            bool
}

// Response describes the answer of one status; no ContentType is no body.
type Response struct {
	Status                           int
	Description, ContentType, Schema string
}

// Route is one row of the table from which the mux and the OpenAPI document are made.
type Route struct {
	Method string
	// Pattern is a path with {name} for one segment, and at its end {path...} for the rest.
	Pattern string
	Access  Access
	// Unguarded routes are for probes that know no host name: Host and Origin are not looked at.
	Unguarded bool
	// Long routes stream, or wait for a result: others are bounded in time.
	Long        bool
	ID, Summary string
	Params      []Param
	Body        *Body
	Responses   []Response
	// Handle answers a request that was let in. An error is answered as a problem document.
	Handle func(w http.ResponseWriter, r *http.Request) error
}

// table is every route, one group a file.
func (s *Server) table() []Route {
	return slices.Concat(s.toolRoutes(), s.conversationRoutes(), s.turnRoutes(), s.fileRoutes(), s.historyRoutes(),
		s.uploadRoutes(), s.artifactRoutes(), s.serviceRoutes(), s.cfg.More)
}

// mux registers each path of the table once, so that a method it does not have is told from a path that is not there.
func (s *Server) mux() (http.Handler, error) {
	paths := map[string]map[string]Route{}
	for _, r := range s.routes {
		if paths[r.Pattern] == nil {
			paths[r.Pattern] = map[string]Route{}
		}
		if _, twice := paths[r.Pattern][r.Method]; twice {
			return nil, fmt.Errorf("the route %s %s stands twice in the table", r.Method, r.Pattern)
		}
		paths[r.Pattern][r.Method] = r
	}
	mux := http.NewServeMux()
	for pattern, methods := range paths {
		mux.Handle(pattern, s.byMethod(methods))
	}
	mux.HandleFunc("/", s.noRoute)
	return plainPaths(mux, s.noRoute), nil
}

func (s *Server) noRoute(w http.ResponseWriter, r *http.Request) {
	s.refuse(w, r, notFound("not_found", "There is no such route. /openapi.json lists those that there are."))
}

func (s *Server) byMethod(methods map[string]Route) http.Handler {
	var allowed []string
	for m := range methods {
		allowed = append(allowed, m)
		if m == http.MethodGet {
			allowed = append(allowed, http.MethodHead)
		}
	}
	slices.Sort(allowed)
	allow := strings.Join(allowed, ", ")
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		method := r.Method
		if method == http.MethodHead {
			method = http.MethodGet
		}
		route, ok := methods[method]
		if !ok {
			w.Header().Set("Allow", allow)
			s.refuse(w, r, &Problem{Status: http.StatusMethodNotAllowed, Code: "method_not_allowed",
				Detail: fmt.Sprintf("This path takes %s.", allow)})
			return
		}
		s.serve(route, w, r)
	})
}

func (s *Server) serve(route Route, w http.ResponseWriter, r *http.Request) {
	note := noteOf(r)
	note.route = route.Pattern
	err := s.letIn(route, r)
	if err == nil {
		err = checkIDs(route, r, note)
	}
	if err == nil {
		ctx, cancel := route.bound(r.Context())
		defer cancel()
		err = route.Handle(w, r.WithContext(ctx))
	}
	if err != nil {
		s.refuse(w, r, err)
	}
}

// routeTime bounds a request that neither streams nor waits, should the database neither answer nor fail.
const routeTime = 75 * time.Second

func (r Route) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	if r.Long {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, routeTime)
}

var wildcard = regexp.MustCompile(`\{(\w+)(?:\.\.\.)?\}`)

// checkIDs refuses a segment of the path that is to be an id and is none.
func checkIDs(route Route, r *http.Request, note *note) error {
	for _, m := range wildcard.FindAllStringSubmatch(route.Pattern, -1) {
		name := m[1]
		if name == "path" || name == "tool" {
			continue
		}
		id := r.PathValue(name)
		if !call.ValidID(id) {
			return invalid(`The %s in the path must be 1 to 64 of the characters A-Z, a-z, 0-9, "_" and "-".`, name)
		}
		switch {
		case name == "callId":
			note.call = id
		case name != "id": // a stored result's ref, a skill's name
		case strings.HasPrefix(route.Pattern, "/v1/conversations/{id}"):
			note.conversation = id
		case strings.HasPrefix(route.Pattern, "/v1/turns/{id}"):
			note.turn = id
		}
	}
	return nil
}

// plainPaths keeps the mux from answering an unclean path with a redirect to another one. Below .../files/ every path is
// the file's own to judge, so it goes to the mux as one opaque segment; anywhere else an unclean path is none.
func plainPaths(next http.Handler, notFound http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if before, file, ok := splitFilePath(r.URL.EscapedPath()); ok {
			decoded, err := url.PathUnescape(file)
			if err != nil {
				notFound(w, r)
				return
			}
			opaque, shallow := *r.URL, *r
			opaque.RawPath = before + strings.NewReplacer("/", "%2F", ".", "%2E").Replace(file)
			opaque.Path = before + decoded
			shallow.URL = &opaque
			r = &shallow
		}
		escaped := r.URL.EscapedPath()
		if clean := path.Clean("/" + escaped); clean != escaped && clean+"/" != escaped {
			notFound(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

const conversationsPath = "/v1/conversations/"

// splitFilePath cuts /v1/conversations/{id}/files/{path} behind "files/".
func splitFilePath(escaped string) (before, file string, ok bool) {
	rest, ok := strings.CutPrefix(escaped, conversationsPath)
	if !ok {
		return "", "", false
	}
	id, rest, _ := strings.Cut(rest, "/")
	if file, ok = strings.CutPrefix(rest, "files/"); !ok || !call.ValidID(id) {
		return "", "", false
	}
	return escaped[:len(escaped)-len(file)], file, true
}
