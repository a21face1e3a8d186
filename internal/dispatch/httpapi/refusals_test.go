package httpapi_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"treeline/internal/dispatch/httpapi"
)

func TestWhatIsWrongIsToldByStatusAndCode(t *testing.T) {
	s := newSite(t, nil)
	_, token := s.Turn(t, "k1", "list_files")
	s.do(t, "POST", "/v1/conversations/k1/turns", portalKey, `{"turnId":"taken","caller":{"user":"u","department":"d"},"tools":[]}`).want(t, 201, "")
	s.do(t, "PUT", "/v1/conversations/gone", portalKey, "").want(t, 201, "")
	s.do(t, "DELETE", "/v1/conversations/gone", portalKey, "").want(t, 204, "")
	turns := "/v1/conversations/k1/turns"
	caller := `"caller":{"user":"u","department":"d"},"tools":[]`
	long := strings.Repeat("x", 65)
	for _, c := range []struct {
		name, method, path, token, body string
		headers                         []string
		status                          int
		code                            string
	}{
		{"a path that is none", "GET", "/v2/tools", "", "", nil, 404, "not_found"},
		{"the root", "GET", "/", "", "", nil, 404, "not_found"},
		{"a doubled slash", "GET", "/v1//tools", token, "", nil, 404, "not_found"},
		{"a climbing path", "GET", "/v1/conversations/../tools", token, "", nil, 404, "not_found"},
		{"a trailing slash", "GET", "/v1/tools/", token, "", nil, 404, "not_found"},
		{"a method that is none", "PATCH", "/v1/conversations/k1", portalKey, "", nil, 405, "method_not_allowed"},
		{"a method of another route", "POST", "/v1/tools", token, "", nil, 405, "method_not_allowed"},
		{"no token", "GET", "/v1/tools", "", "", nil, 401, "unauthorized"},
		{"no token for a call", "POST", "/v1/tools/list_files", "", "{}", nil, 401, "unauthorized"},
		{"another scheme", "GET", "/v1/tools", "", "", []string{"Authorization: Basic abc"}, 401, "unauthorized"},
		{"nobody's token", "GET", "/v1/tools", "nobody", "", nil, 401, "turn_unknown"},
		{"nobody's token for a call", "POST", "/v1/tools/list_files", "nobody", "{}", nil, 401, "turn_unknown"},
		{"nobody's token for events", "GET", "/v1/events", "nobody", "", nil, 401, "turn_unknown"},
		{"nobody's token for a result", "GET", "/v1/calls/c1", "nobody", "", nil, 401, "turn_unknown"},
		{"the portal's key for a call", "POST", "/v1/tools/list_files", portalKey, "{}", nil, 401, "turn_unknown"},
		{"a turn's token for the portal", "GET", "/v1/conversations/k1", token, "", nil, 401, "unauthorized"},
		{"no key", "PUT", "/v1/conversations/k1", "", "{}", nil, 401, "unauthorized"},
		{"the viewer writes", "PUT", "/v1/conversations/k1/files/a", viewerKey, "x", nil, 403, "read_only"},
		{"the viewer deletes", "DELETE", "/v1/conversations/k1", viewerKey, "", nil, 403, "read_only"},
		{"another host", "GET", "/v1/tools", token, "", []string{"Host: evil.example"}, 421, "host_not_allowed"},
		{"a host that begins like one", "GET", "/v1/tools", token, "", []string{"Host: 127.0.0.1.evil.example"}, 421, "host_not_allowed"},
		{"another host for a path that is none", "GET", "/nothing", "", "", []string{"Host: evil.example"}, 421, "host_not_allowed"},
		{"another origin", "GET", "/v1/tools", token, "", []string{"Origin: http://evil.example"}, 403, "origin_not_allowed"},
		{"a sandboxed page", "GET", "/v1/tools", token, "", []string{"Origin: null"}, 403, "origin_not_allowed"},
		{"another port's page", "GET", "/v1/tools", token, "", []string{"Origin: http://127.0.0.1:1"}, 403, "origin_not_allowed"},
		{"an odd conversation id", "GET", "/v1/conversations/a%2Fb", portalKey, "", nil, 422, "invalid_arguments"},
		{"a long conversation id", "PUT", "/v1/conversations/" + long, portalKey, "", nil, 422, "invalid_arguments"},
		{"an odd call id", "GET", "/v1/calls/a.b", token, "", nil, 422, "invalid_arguments"},
		{"an odd idempotency key", "POST", "/v1/tools/list_files", token, "{}", []string{"Idempotency-Key: a b"}, 422, "invalid_arguments"},
		{"an empty idempotency key", "POST", "/v1/tools/list_files", token, "{}", []string{"Idempotency-Key: "}, 422, "invalid_arguments"},
		{"two idempotency keys", "POST", "/v1/tools/list_files", token, "{}", []string{"Idempotency-Key: a", "Idempotency-Key: b"}, 422, "invalid_arguments"},
		{"U+0000 in a tool's name", "POST", "/v1/tools/a%00b", token, "{}", nil, 422, "invalid_arguments"},
		{"no UTF-8 in a tool's name", "POST", "/v1/tools/a%FFb", token, "{}", nil, 422, "invalid_arguments"},
		{"a conversation that never was", "GET", "/v1/conversations/k2", portalKey, "", nil, 404, "not_found"},
		{"files of one that never was", "GET", "/v1/conversations/k2/files", portalKey, "", nil, 404, "not_found"},
		{"an upload to one that never was", "PUT", "/v1/conversations/k2/files/a", portalKey, "x", nil, 404, "not_found"},
		{"deleting one that never was", "DELETE", "/v1/conversations/k2", portalKey, "", nil, 404, "not_found"},
		{"restoring one that never was", "POST", "/v1/conversations/k2/restore", portalKey, "{}", nil, 404, "not_found"},
		{"a turn in one that never was", "POST", "/v1/conversations/k2/turns", portalKey, "{" + caller + "}", nil, 404, "not_found"},
		{"closing a turn that never was", "POST", "/v1/turns/t9/close", portalKey, "{}", nil, 404, "not_found"},
		{"a turn in a deleted one", "POST", "/v1/conversations/gone/turns", portalKey, "{" + caller + "}", nil, 409, "conversation_deleted"},
		{"files of a deleted one", "GET", "/v1/conversations/gone/files", portalKey, "", nil, 404, "conversation_deleted"},
		{"a file of a deleted one", "GET", "/v1/conversations/gone/files/a", portalKey, "", nil, 404, "conversation_deleted"},
		{"an upload to a deleted one", "PUT", "/v1/conversations/gone/files/a", portalKey, "x", nil, 409, "conversation_deleted"},
		{"a revert in a deleted one", "POST", "/v1/conversations/gone/revert", portalKey, `{"beforeSeq":1}`, nil, 409, "conversation_deleted"},
		{"a file that is not there", "GET", "/v1/conversations/k1/files/a", portalKey, "", nil, 404, "path_not_found"},
		{"deleting a file that is not there", "DELETE", "/v1/conversations/k1/files/a", portalKey, "", nil, 404, "path_not_found"},
		{"a turn id that is taken", "POST", turns, portalKey, `{"turnId":"taken",` + caller + `}`, nil, 409, "turn_exists"},
		{"a turn id of Treeline's own", "POST", turns, portalKey, `{"turnId":"tl-x",` + caller + `}`, nil, 422, "invalid_arguments"},
		{"an odd turn id", "POST", turns, portalKey, `{"turnId":"a b",` + caller + `}`, nil, 422, "invalid_arguments"},
		{"a turn without a caller", "POST", turns, portalKey, `{"tools":[]}`, nil, 422, "invalid_arguments"},
		{"a turn without a body", "POST", turns, portalKey, ``, nil, 422, "invalid_arguments"},
		{"a caller without a department", "POST", turns, portalKey, `{"caller":{"user":"u"},"tools":[]}`, nil, 422, "invalid_arguments"},
		{"U+0000 in a user's name", "POST", turns, portalKey, `{"caller":{"user":"u\u0000","department":"d"},"tools":[]}`, nil, 422, "invalid_arguments"},
		{"U+0000 in a tool's name", "POST", turns, portalKey, `{"caller":{"user":"u","department":"d"},"tools":["\u0000"]}`, nil, 422, "invalid_arguments"},
		{"tools that are no list", "POST", turns, portalKey, `{"caller":{"user":"u","department":"d"},"tools":"read_file"}`, nil, 422, "invalid_arguments"},
		{"an unknown field of a turn", "POST", turns, portalKey, `{"colour":1,` + caller + `}`, nil, 422, "invalid_arguments"},
		{"a field in other letters", "POST", turns, portalKey, `{"TurnId":"x",` + caller + `}`, nil, 422, "invalid_arguments"},
		{"a field given twice", "POST", turns, portalKey, `{"turnId":"x","turnId":"y",` + caller + `}`, nil, 422, "invalid_arguments"},
		{"an expiry of nothing", "POST", turns, portalKey, `{"expiresInSeconds":0,` + caller + `}`, nil, 422, "invalid_arguments"},
		{"an endless expiry", "POST", turns, portalKey, `{"expiresInSeconds":1e300,` + caller + `}`, nil, 422, "invalid_arguments"},
		{"a body that is no JSON", "POST", turns, portalKey, `{`, nil, 422, "invalid_arguments"},
		{"a body with something behind", "POST", turns, portalKey, `{` + caller + `} x`, nil, 422, "invalid_arguments"},
		{"a body that is no object", "PUT", "/v1/conversations/k3", portalKey, `[]`, nil, 422, "invalid_arguments"},
		{"a body with a field where none is", "PUT", "/v1/conversations/k3", portalKey, `{"a":1}`, nil, 422, "invalid_arguments"},
		{"a body that is too large", "POST", turns, portalKey, `{"x":"` + strings.Repeat("x", 1<<20) + `"}`, nil, 413, "too_large"},
		{"a revert to nowhere", "POST", "/v1/conversations/k1/revert", portalKey, `{}`, nil, 422, "invalid_arguments"},
		{"a revert to call 0", "POST", "/v1/conversations/k1/revert", portalKey, `{"beforeSeq":0}`, nil, 422, "invalid_arguments"},
		{"a revert to half a call", "POST", "/v1/conversations/k1/revert", portalKey, `{"beforeSeq":1.5}`, nil, 422, "invalid_arguments"},
		{"a revert past all numbers", "POST", "/v1/conversations/k1/revert", portalKey, `{"beforeSeq":1e30}`, nil, 422, "invalid_arguments"},
		{"a revert of no path", "POST", "/v1/conversations/k1/revert", portalKey, `{"beforeSeq":1,"path":"../x"}`, nil, 422, "path_invalid"},
		{"an actor that is no text", "DELETE", "/v1/conversations/k1/files/a", portalKey, "", []string{"Treeline-Actor: \xff"}, 422, "invalid_arguments"},
		{"an actor that is too long", "DELETE", "/v1/conversations/k1/files/a", portalKey, "", []string{"Treeline-Actor: " + strings.Repeat("x", 257)}, 422, "invalid_arguments"},
		{"a page of nothing", "GET", "/v1/conversations/k1/steps?limit=0", portalKey, "", nil, 422, "invalid_arguments"},
		{"a page of too much", "GET", "/v1/conversations/k1/changes?limit=1001", portalKey, "", nil, 422, "invalid_arguments"},
		{"a page after nonsense", "GET", "/v1/conversations/k1/changes?after=!", portalKey, "", nil, 422, "invalid_arguments"},
		{"a page after a path that is none", "GET", "/v1/conversations/k1/changes?after=eyJQYXRoIjoiXHUwMDAwIn0", portalKey, "", nil, 422, "invalid_arguments"},
		{"steps of an odd turn", "GET", "/v1/conversations/k1/steps?turn=%00", portalKey, "", nil, 422, "invalid_arguments"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := s.do(t, c.method, c.path, c.token, c.body, c.headers...).want(t, c.status, c.code)
			if challenge := r.Header.Get("WWW-Authenticate"); (challenge != "") != (c.status == 401) {
				t.Errorf("WWW-Authenticate %q", challenge)
			}
			if allow := r.Header.Get("Allow"); (allow != "") != (c.status == 405) {
				t.Errorf("Allow %q", allow)
			}
		})
	}
}

func TestAllowNamesTheMethodsOfThePath(t *testing.T) {
	s := newSite(t, nil)
	for path, want := range map[string]string{
		"/v1/conversations/k1":         "DELETE, GET, HEAD, PUT",
		"/v1/conversations/k1/files/a": "DELETE, GET, HEAD, PUT",
		"/v1/tools/x":                  "POST",
		"/livez":                       "GET, HEAD",
	} {
		if got := s.do(t, "OPTIONS", path, portalKey, "").want(t, 405, "method_not_allowed").Header.Get("Allow"); got != want {
			t.Errorf("Allow of %s is %q, want %q", path, got, want)
		}
	}
}

func TestHostsAndOriginsThatMayCall(t *testing.T) {
	s := newSite(t, func(c *httpapi.Config) { c.AllowedHosts = []string{"tree.example", "Files.Example:8443", ""} })
	_, port, _ := strings.Cut(s.addr, ":")
	for _, c := range []struct {
		host, origin string
		status       int
	}{
		{"localhost", "", 200},
		{"LOCALHOST:1", "", 200},
		{"localhost.", "", 200},
		{"[::1]:80", "", 200},
		{"127.0.0.9", "", 200},
		{s.addr, "", 200},
		{"tree.example", "", 200},
		{"tree.example:99", "", 200},
		{"files.example:8443", "", 200},
		{"files.example", "", 421},
		{"files.example:8444", "", 421},
		{"sub.tree.example", "", 421},
		{"10.0.0.1", "", 421},
		{s.addr, "http://" + s.addr, 200},
		{s.addr, "http://localhost:" + port, 200},
		{"tree.example", "https://tree.example", 200},
		{"tree.example:443", "https://tree.example", 200},
		{s.addr, "https://files.example:8443", 200},
		{"tree.example", "https://tree.example:444", 403},
		{s.addr, "https://evil.example", 403},
		{s.addr, "http://localhost:" + port + "/x", 403},
		{s.addr, "file://localhost", 403},
		{s.addr, "null", 403},
	} {
		headers := []string{"Host: " + c.host}
		if c.origin != "" {
			headers = append(headers, "Origin: "+c.origin)
		}
		if r := s.do(t, "GET", "/openapi.json", "", "", headers...); r.StatusCode != c.status {
			t.Errorf("host %q, origin %q: status %d, want %d", c.host, c.origin, r.StatusCode, c.status)
		}
		for _, probe := range []string{"/livez", "/readyz", "/metrics"} {
			if r := s.do(t, "GET", probe, "", "", headers...); r.StatusCode != 200 {
				t.Errorf("%s with host %q, origin %q: status %d, want 200", probe, c.host, c.origin, r.StatusCode)
			}
		}
	}
}

func TestKeysAreOneOrTwo(t *testing.T) {
	for _, c := range []struct {
		portal, viewer string
		good           bool
	}{
		{"a", "", true}, {"a,b", "v", true}, {" a \r\n\n b\n", "v\nw", true},
		{"", "v", false}, {" ,\n", "", false}, {"a,b,c", "", false}, {"a", "u,v,w", false},
	} {
		if _, err := httpapi.ParseKeys(c.portal, c.viewer); (err == nil) != c.good {
			t.Errorf("ParseKeys(%q, %q): %v", c.portal, c.viewer, err)
		}
	}
}

func TestTheRefusalOfACallIsAnAnswer(t *testing.T) {
	s := newSite(t, nil)
	_, token := s.Turn(t, "k1", "write_file")
	for _, c := range []struct{ name, tool, body, code, says string }{
		{"no JSON", "write_file", `{"path":`, "invalid_arguments", "JSON"},
		{"no UTF-8", "write_file", "{\"path\":\"\xff\"}", "invalid_arguments", "UTF-8"},
		{"no body", "write_file", ``, "invalid_arguments", "path"},
		{"a tool that is not offered", "read_file", `{"path":"a"}`, "tool_not_offered", "read_file"},
		{"a tool with a space and more", "no%20such%2Ftool", `{}`, "tool_not_offered", "no such/tool"},
		{"a body over 1 MiB", "write_file", `{"path":"a","content":"` + strings.Repeat("x", 1<<20) + `"}`, "too_large", "run_code"},
		{"a body over 4 MiB", "write_file", `{"path":"a","content":"` + strings.Repeat("x", 4<<20) + `"}`, "too_large", "run_code"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := s.do(t, "POST", "/v1/tools/"+c.tool, token, c.body).want(t, 200, "").json(t)
			text, _ := r["content"].([]any)[0].(map[string]any)["text"].(string)
			if r["status"] != "refused" || r["code"] != c.code || r["isError"] != true || !strings.Contains(text, c.says) {
				t.Errorf("result %v", r)
			}
		})
	}
}

func TestWaitingIsThePreferenceOfTheClient(t *testing.T) {
	s := newSite(t, nil)
	_, token := s.Turn(t, "k1", "run_code") // which nobody does here
	for i, c := range []struct {
		prefer, applied string
	}{
		{"wait=0", "wait=0"}, {"respond-async, wait=0", "wait=0"}, {`WAIT="0"; x=1`, "wait=0"}, {"wait=00", "wait=0"},
	} {
		id := "c" + strconv.Itoa(i)
		start := time.Now()
		r := s.do(t, "POST", "/v1/tools/run_code", token, `{"code":"print(1)"}`, "Idempotency-Key: "+id, "Prefer: "+c.prefer).want(t, 202, "")
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("%s took %s", c.prefer, took)
		}
		if r.Header.Get("Location") != "/v1/calls/"+id || r.Header.Get("Preference-Applied") != c.applied {
			t.Errorf("%s: headers %v", c.prefer, r.Header)
		}
		if body := r.json(t); body["callId"] != id || body["seq"] != float64(i+1) || body["state"] == "done" {
			t.Errorf("%s: %v", c.prefer, body)
		}
	}
	s.do(t, "GET", "/v1/calls/c1", token, "").want(t, 202, "")
	cancelled := s.do(t, "POST", "/v1/calls/c1/cancel", token, "").want(t, 200, "").json(t)
	if cancelled["status"] != "failed" || cancelled["code"] != "cancelled" {
		t.Errorf("cancelled %v", cancelled)
	}
	s.do(t, "POST", "/v1/calls/c9/cancel", token, "").want(t, 404, "not_found")
	start := time.Now()
	s.do(t, "POST", "/v1/tools/run_code", token, `{"code":"print(1)"}`, "Idempotency-Key: c0", "Prefer: wait=1").want(t, 202, "")
	if took := time.Since(start); took < time.Second || took > 10*time.Second {
		t.Errorf("wait=1 took %s", took)
	}
}
