package httpapi

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"treeline/schemas"
)

//go:embed schemas/components.json
var componentsJSON []byte

const componentsURL = "urn:treeline:http"

// messages are the components that the contract with other programs has, by their names there.
func messages() map[string]string {
	return map[string]string{"Result": "result", "Pending": "waiting", "Problem": "problem"}
}

// components gives every schema by name.
func components() (map[string]any, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(componentsJSON))
	if err != nil {
		return nil, fmt.Errorf("read the schemas of the HTTP API: %w", err)
	}
	all, ok := doc.(map[string]any)
	if !ok {
		return nil, errors.New("the schemas of the HTTP API are no object")
	}
	for name, file := range messages() {
		raw, err := schemas.Files.ReadFile("messages/" + file + ".json")
		if err != nil {
			return nil, fmt.Errorf("read the schema of %s: %w", name, err)
		}
		if all[name], err = jsonschema.UnmarshalJSON(bytes.NewReader(raw)); err != nil {
			return nil, fmt.Errorf("read the schema of %s: %w", name, err)
		}
	}
	return all, addTools(all)
}

// addTools adds the arguments of each tool, and Arguments, which are those of any.
func addTools(all map[string]any) error {
	files, err := schemas.Files.ReadDir("tools")
	if err != nil {
		return fmt.Errorf("list the schemas of the tools: %w", err)
	}
	var each []any
	for _, f := range files {
		raw, err := schemas.Files.ReadFile("tools/" + f.Name())
		if err != nil {
			return fmt.Errorf("read the schema of a tool: %w", err)
		}
		name := strings.TrimSuffix(f.Name(), ".json")
		if all[name], err = jsonschema.UnmarshalJSON(bytes.NewReader(raw)); err != nil {
			return fmt.Errorf("read the schema of %s: %w", name, err)
		}
		each = append(each, ref(name))
	}
	all["Arguments"] = map[string]any{"description": "The arguments of the tool that the path names.", "anyOf": each}
	return nil
}

// rules are the compiled schemas of the bodies that people send. They never change once they are made.
var rules = sync.OnceValues(func() (map[string]*jsonschema.Schema, error) {
	all, err := components()
	if err != nil {
		return nil, err
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource(componentsURL, map[string]any{"components": map[string]any{"schemas": all}}); err != nil {
		return nil, fmt.Errorf("add the schemas of the HTTP API: %w", err)
	}
	out := map[string]*jsonschema.Schema{}
	for name := range all {
		if out[name], err = compiler.Compile(componentsURL + "#/components/schemas/" + name); err != nil {
			return nil, fmt.Errorf("compile the schema %s: %w", name, err)
		}
	}
	return out, nil
})

// validate refuses a body that is not as the named schema says, naming the first place and what is wrong there.
func validate(schema string, value any) error {
	all, err := rules()
	if err != nil {
		return err
	}
	rule, ok := all[schema]
	if !ok {
		return fmt.Errorf("there is no schema %s", schema)
	}
	err = rule.Validate(value)
	var wrong *jsonschema.ValidationError
	if errors.As(err, &wrong) {
		for len(wrong.Causes) > 0 {
			wrong = wrong.Causes[0]
		}
		at := "/" + strings.Join(wrong.InstanceLocation, "/")
		if len(wrong.InstanceLocation) == 0 {
			at = "the body"
		}
		return invalid("%s: %s", at, wrong.ErrorKind.LocalizedString(message.NewPrinter(language.English)))
	}
	return err
}

func ref(schema string) map[string]any {
	return map[string]any{"$ref": "#/components/schemas/" + schema}
}

// openAPI describes the table of routes as an OpenAPI 3.1 document.
func openAPI(routes []Route) ([]byte, error) {
	all, err := components()
	if err != nil {
		return nil, err
	}
	if _, err := rules(); err != nil {
		return nil, err
	}
	paths := map[string]map[string]any{}
	for _, r := range routes {
		for _, name := range r.schemas() {
			if all[name] == nil {
				return nil, fmt.Errorf("the route %s %s names the schema %s, which there is not", r.Method, r.Pattern, name)
			}
		}
		path := strings.ReplaceAll(r.Pattern, "...}", "}")
		if paths[path] == nil {
			paths[path] = map[string]any{}
		}
		paths[path][strings.ToLower(r.Method)] = r.operation()
	}
	b, err := json.Marshal(map[string]any{
		"openapi": "3.1.0",
		"info": map[string]any{"title": "Treeline", "version": "1",
			"description": "Tool calls for models, and what people do to conversations. Errors are problem documents (RFC 9457)."},
		"paths": paths,
		"components": map[string]any{
			"schemas": all,
			"securitySchemes": map[string]any{
				"turnToken": map[string]any{"type": "http", "scheme": "bearer", "description": "The token of a turn."},
				"portalKey": map[string]any{"type": "http", "scheme": "bearer", "description": "The portal's key; for GET the viewer's too."},
			},
		},
	})
	if err != nil {
		return nil, fmt.Errorf("encode the OpenAPI document: %w", err)
	}
	return b, nil
}

// schemas are the components that a route names.
func (r Route) schemas() []string {
	var names []string
	if r.Body != nil && r.Body.Schema != "" {
		names = append(names, r.Body.Schema)
	}
	for _, a := range r.Responses {
		if a.Schema != "" {
			names = append(names, a.Schema)
		}
	}
	return names
}

func (r Route) operation() map[string]any {
	responses := map[string]any{"default": map[string]any{"description": "What went wrong.",
		"content": map[string]any{"application/problem+json": map[string]any{"schema": ref("Problem")}}}}
	for _, a := range r.Responses {
		response := map[string]any{"description": a.Description}
		if a.ContentType != "" {
			response["content"] = mediaType(a.ContentType, a.Schema)
		}
		responses[strconv.Itoa(a.Status)] = response
	}
	o := map[string]any{"operationId": r.ID, "summary": r.Summary, "responses": responses, "security": []any{}}
	if name := map[Access]string{TurnToken: "turnToken", PortalKey: "portalKey"}[r.Access]; name != "" {
		o["security"] = []any{map[string]any{name: []any{}}}
	}
	if params := r.parameters(); len(params) > 0 {
		o["parameters"] = params
	}
	if r.Body != nil {
		o["requestBody"] = map[string]any{"required": !r.Body.Optional, "content": mediaType(r.Body.ContentType, r.Body.Schema)}
	}
	return o
}

func mediaType(contentType, schema string) map[string]any {
	media := map[string]any{}
	if schema != "" {
		media["schema"] = ref(schema)
	}
	return map[string]any{contentType: media}
}

func (r Route) parameters() []any {
	var out []any
	for _, m := range wildcard.FindAllStringSubmatch(r.Pattern, -1) {
		schema := ref("Id")
		if m[1] == "path" || m[1] == "tool" {
			schema = map[string]any{"type": "string"}
		}
		out = append(out, map[string]any{"name": m[1], "in": "path", "required": true, "schema": schema})
	}
	for _, p := range r.Params {
		schema := p.Schema
		if schema == "" {
			schema = `{"type":"string"}`
		}
		out = append(out, map[string]any{"name": p.Name, "in": p.In, "description": p.Description, "required": p.Required,
			"schema": json.RawMessage(schema)})
	}
	return out
}

func (s *Server) describe(w http.ResponseWriter, _ *http.Request) error {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	_, _ = w.Write(s.openAPI) // a client that is gone needs no answer
	return nil
}
