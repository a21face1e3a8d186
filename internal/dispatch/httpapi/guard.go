package httpapi

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
)

// hosts are the names under which the server may be called. A page of another name that was made to resolve to this
// address (DNS rebinding) is thereby kept out.
type hosts struct {
	names map[string]bool // any port
	exact map[string]bool // name:port
}

func newHosts(listen string, allowed []string) hosts {
	h := hosts{names: map[string]bool{"localhost": true}, exact: map[string]bool{}}
	if name, _, err := net.SplitHostPort(listen); err == nil && name != "" {
		if ip, err := netip.ParseAddr(name); err != nil || !ip.IsUnspecified() {
			h.names[strings.ToLower(name)] = true
		}
	}
	for _, a := range allowed {
		a = strings.ToLower(strings.TrimSpace(a))
		if a == "" {
			continue
		}
		if _, port, err := net.SplitHostPort(a); err == nil && port != "" {
			h.exact[a] = true
			continue
		}
		h.names[strings.Trim(a, "[]")] = true
	}
	return h
}

// split gives the name and the port of a Host header, which need not have one.
func split(hostport string) (name, port string) {
	hostport = strings.ToLower(hostport)
	if n, p, err := net.SplitHostPort(hostport); err == nil {
		return strings.TrimSuffix(n, "."), p
	}
	return strings.TrimSuffix(strings.Trim(hostport, "[]"), "."), ""
}

func (h hosts) allow(hostport string) bool {
	name, port := split(hostport)
	if h.names[name] || h.exact[net.JoinHostPort(name, port)] {
		return true
	}
	ip, err := netip.ParseAddr(name)
	return err == nil && ip.IsLoopback()
}

// allowOrigin reports whether a page of the origin may call a server that it called host: pages of the server itself, and
// of a host that was allowed with its port.
func (h hosts) allowOrigin(origin, host string) bool {
	u, err := url.Parse(origin)
	if err != nil || u.Host == "" || u.Path != "" || u.Scheme != "http" && u.Scheme != "https" {
		return false
	}
	name, port := split(u.Host)
	_, own := split(host)
	if h.exact[net.JoinHostPort(name, port)] {
		return true
	}
	byDefault := map[string]string{"http": "80", "https": "443"}[u.Scheme]
	same := port == own || port == "" && own == byDefault || own == "" && port == byDefault
	return same && h.allow(u.Host)
}

// guard checks Host and Origin before anything else is looked at.
func (s *Server) guard(next http.Handler) http.Handler {
	unguarded := map[string]bool{}
	for _, r := range s.routes {
		if r.Unguarded {
			unguarded[r.Pattern] = true
		}
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if unguarded[r.URL.Path] {
			next.ServeHTTP(w, r)
			return
		}
		if !s.hosts.allow(r.Host) {
			s.refuse(w, r, &Problem{Status: http.StatusMisdirectedRequest, Code: "host_not_allowed",
				Detail: "This server is not called by that host name. TREELINE_ALLOWED_HOSTS lists the names that it answers to."})
			return
		}
		for _, origin := range r.Header.Values("Origin") {
			if !s.hosts.allowOrigin(origin, r.Host) {
				s.refuse(w, r, &Problem{Status: http.StatusForbidden, Code: "origin_not_allowed",
					Detail: "Pages of that origin may not call this server."})
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}
