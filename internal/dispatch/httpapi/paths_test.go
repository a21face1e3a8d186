package httpapi

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// Whatever stands below .../files/ reaches the handler decoded once, and never as a redirect or another route.
func FuzzFilePath(f *testing.F) {
	for _, seed := range []string{"a", "", "a/b", "../x", "a//b/", "%2e%2E/%2Fx", "%252F", "./.", "a%00b", "é/%FF", "a;b=c", "a%20b+c", "files/", "~*'()"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, file string) {
		if strings.ContainsAny(file, "?#") {
			return // the end of the path
		}
		u, err := url.ParseRequestURI("/v1/conversations/k1/files/" + file)
		if err != nil {
			return // net/http refuses it
		}
		want := strings.TrimPrefix(u.Path, "/v1/conversations/k1/files/")
		got, served := "", false
		mux := http.NewServeMux()
		mux.HandleFunc("GET "+filePattern, func(_ http.ResponseWriter, r *http.Request) { got, served = r.PathValue("path"), true })
		w := httptest.NewRecorder()
		r := &http.Request{Method: "GET", URL: u, Host: "localhost", Header: http.Header{}}
		plainPaths(mux, http.NotFound).ServeHTTP(w, r)
		if !served || got != want {
			t.Errorf("%q: status %d, the handler got %q, want %q", file, w.Code, got, want)
		}
	})
}
