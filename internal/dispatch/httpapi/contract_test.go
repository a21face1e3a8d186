package httpapi_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

const documentURL = "urn:test:openapi"

// contract is the server's own OpenAPI document. Every answer that a test gets is held to it.
type contract struct {
	once     sync.Once
	compiler *jsonschema.Compiler
	paths    map[string]any
	err      error
}

func (c *contract) load(s *site) error {
	c.once.Do(func() {
		var resp *http.Response
		if resp, c.err = s.client.Get(s.url + "/openapi.json"); c.err != nil {
			return
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if c.err = err; c.err != nil {
			return
		}
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
		if c.err = err; c.err != nil {
			return
		}
		c.compiler = jsonschema.NewCompiler()
		c.paths, _ = doc.(map[string]any)["paths"].(map[string]any)
		c.err = c.compiler.AddResource(documentURL, doc)
	})
	return c.err
}

// check holds an answer to what the document says of its operation and status.
func (c *contract) check(t *testing.T, s *site, method, path string, r reply) {
	t.Helper()
	if err := c.load(s); err != nil {
		t.Fatal(err)
	}
	mediaType, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	template, operation := c.operation(method, path)
	if r.StatusCode >= 400 {
		if mediaType != "application/problem+json" && method != "HEAD" {
			t.Errorf("%s %s: an error of type %q", method, path, mediaType)
		}
		c.validate(t, documentURL+"#/components/schemas/Problem", method, path, r)
		return
	}
	status := strconv.Itoa(r.StatusCode)
	responses, _ := operation["responses"].(map[string]any)
	response, ok := responses[status].(map[string]any)
	if !ok {
		t.Errorf("%s %s: the document does not know the status %s of %s", method, path, status, template)
		return
	}
	content, _ := response["content"].(map[string]any)
	if len(content) == 0 || mediaType != "application/json" {
		return
	}
	media, ok := content[mediaType].(map[string]any)
	if !ok {
		t.Errorf("%s %s: the document does not know the type %s", method, path, mediaType)
		return
	}
	if schema, ok := media["schema"].(map[string]any); ok {
		c.validate(t, documentURL+fmt.Sprint(schema["$ref"]), method, path, r)
	}
}

func (c *contract) validate(t *testing.T, schema, method, path string, r reply) {
	t.Helper()
	if method == "HEAD" {
		return
	}
	compiled, err := c.compiler.Compile(schema)
	if err != nil {
		t.Fatal(err)
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(r.body))
	if err == nil {
		err = compiled.Validate(v)
	}
	if err != nil {
		t.Errorf("%s %s: %d %s is not as the document says: %v", method, path, r.StatusCode, r.body, err)
	}
}

// operation finds the path and method of the document that a request is for.
func (c *contract) operation(method, path string) (string, map[string]any) {
	if method == "HEAD" {
		method = "GET"
	}
	path, _, _ = strings.Cut(path, "?")
	parts := strings.Split(path, "/")
	for template, methods := range c.paths {
		operation, ok := methods.(map[string]any)[strings.ToLower(method)].(map[string]any)
		if ok && fits(strings.Split(template, "/"), parts) {
			return template, operation
		}
	}
	return "", nil
}

func fits(template, parts []string) bool {
	for i, want := range template {
		switch {
		case i >= len(parts):
			return false
		case want == "{path}":
			return true
		case !strings.HasPrefix(want, "{") && want != parts[i]:
			return false
		}
	}
	return len(template) == len(parts)
}
