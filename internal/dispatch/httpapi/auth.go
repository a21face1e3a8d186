package httpapi

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"net/http"
	"strings"
)

// Keys are the hashes of the keys that open the portal's routes.
type Keys struct{ portal, viewer [][sha256.Size]byte }

// ParseKeys reads keys as they stand in a file or in the environment, split by commas or newlines: one or, for rotation,
// two of the portal's, and up to two of viewers, who only read.
func ParseKeys(portal, viewer string) (Keys, error) {
	k := Keys{portal: hashes(portal), viewer: hashes(viewer)}
	switch {
	case len(k.portal) == 0:
		return Keys{}, errors.New("the portal has no key: set one")
	case len(k.portal) > 2:
		return Keys{}, errors.New("the portal has more than two keys: keep the present one and the next")
	case len(k.viewer) > 2:
		return Keys{}, errors.New("viewers have more than two keys: keep the present one and the next")
	}
	return k, nil
}

func hashes(keys string) [][sha256.Size]byte {
	var out [][sha256.Size]byte
	for _, key := range strings.FieldsFunc(keys, func(r rune) bool { return r == ',' || r == '\n' || r == '\r' }) {
		if key = strings.TrimSpace(key); key != "" {
			out = append(out, sha256.Sum256([]byte(key)))
		}
	}
	return out
}

// holds compares hashes in constant time, and all of them, so that time tells nothing of the keys.
func holds(list [][sha256.Size]byte, key string) bool {
	sum, found := sha256.Sum256([]byte(key)), 0
	for _, k := range list {
		found |= subtle.ConstantTimeCompare(k[:], sum[:])
	}
	return found == 1
}

// bearer gives the token of a request, or "".
func bearer(r *http.Request) string {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

// letIn checks the credential that a route asks for. A turn's token is judged by the dispatcher; here it only must be
// there.
func (s *Server) letIn(route Route, r *http.Request) error {
	token := bearer(r)
	switch {
	case route.Access == Anyone:
		return nil
	case token == "":
		return &Problem{Status: http.StatusUnauthorized, Code: "unauthorized", Detail: "This route needs the header Authorization: Bearer with a token or key."}
	case route.Access == TurnToken, holds(s.cfg.Keys.portal, token):
		return nil
	case !holds(s.cfg.Keys.viewer, token):
		return &Problem{Status: http.StatusUnauthorized, Code: "unauthorized", Detail: "The key is not the portal's."}
	case route.Method != http.MethodGet:
		return &Problem{Status: http.StatusForbidden, Code: "read_only", Detail: "The viewer's key only reads."}
	}
	return nil
}
