// Package catalogue is the only list of tools: what each is called, in which lane it runs, what it may do, which kind of
// step it leaves in a trace, what a model reads about it, and what its arguments have to be. Check is the door: it judges
// arguments without a look at any workspace. The package is pure; its schemas come from the package schemas.
package catalogue

import (
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"treeline/schemas"
)

// Lane says which workers do a tool's calls.
type Lane string

const (
	// LaneFile is done by file workers.
	LaneFile Lane = "file"
	// LaneCode is done by code workers, in a sandbox.
	LaneCode Lane = "code"
	// LaneNone is answered by the dispatcher: such a call touches no workspace and never waits.
	LaneNone Lane = "none"
)

// Effect says whether a tool may change anything that outlives its call.
type Effect string

const (
	// Read leaves everything as it is.
	Read Effect = "read"
	// Change may change the workspace or an artifact.
	Change Effect = "change"
)

// Tool is one row of the catalogue.
type Tool struct {
	Name   string
	Lane   Lane
	Effect Effect
	// Kind is the kind of step that a call leaves in its turn's trace.
	Kind string
	// Description is what a model reads; empty for a portal call.
	Description string
	// Schema is the JSON Schema of the arguments as it is published.
	Schema json.RawMessage
	// Portal marks the portal's own calls, which no turn is ever offered.
	Portal bool

	template string // the description with what may still be filled in
	rules    *jsonschema.Schema
	schema   map[string]any
	examples []json.RawMessage
}

// Catalogue is the list of tools. It does not change once it is loaded and may be used by many goroutines.
type Catalogue struct {
	tools     []Tool
	byName    map[string]int
	installed string
}

// installedMark stands in run_code's description for what WithInstalled fills in.
const installedMark = "{installed}"

// Load reads the embedded schemas. An error means that the binary was built from broken ones.
func Load() (*Catalogue, error) {
	c := &Catalogue{byName: make(map[string]int, len(rows))}
	for _, row := range rows {
		folder := "tools"
		if row.Portal {
			folder = "portal"
		}
		raw, err := schemas.Files.ReadFile(path.Join(folder, row.Name+".json"))
		if err != nil {
			return nil, fmt.Errorf("reading the schema of %s: %w", row.Name, err)
		}
		t, err := row.withSchema(raw)
		if err != nil {
			return nil, fmt.Errorf("loading the schema of %s: %w", row.Name, err)
		}
		c.byName[t.Name] = len(c.tools)
		c.tools = append(c.tools, t)
	}
	return c.WithInstalled("Python's standard library"), nil
}

// Tool gives the tool of that name, one of the portal's among them.
func (c *Catalogue) Tool(name string) (Tool, bool) {
	i, ok := c.byName[name]
	if !ok {
		return Tool{}, false
	}
	return c.tools[i], true
}

// Offered gives the tools with the given names, each once, in the order of the catalogue. Names of no tool and of the
// portal's own calls are left out.
func (c *Catalogue) Offered(names []string) []Tool {
	var offered []Tool
	for _, t := range c.tools {
		if !t.Portal && slices.Contains(names, t.Name) {
			offered = append(offered, t)
		}
	}
	return offered
}

// Offers reports whether a turn that was given names may call the tool: it is among them, exists, and is not the portal's.
func (c *Catalogue) Offers(names []string, tool string) bool {
	t, ok := c.Tool(tool)
	return ok && !t.Portal && slices.Contains(names, tool)
}

// Names gives the name of every tool that a turn can be offered, in the order of the catalogue.
func (c *Catalogue) Names() []string {
	var names []string
	for _, t := range c.tools {
		if !t.Portal {
			names = append(names, t.Name)
		}
	}
	return names
}

// WithInstalled gives a catalogue whose run_code says what the sandbox has installed, such as "Python 3.12; numpy 2.1,
// pandas 2.2". The catalogue it is asked of stays as it is.
func (c *Catalogue) WithInstalled(text string) *Catalogue {
	w := &Catalogue{tools: slices.Clone(c.tools), byName: c.byName, installed: text}
	for i := range w.tools {
		w.tools[i].Description = strings.ReplaceAll(w.tools[i].template, installedMark, text)
	}
	return w
}
