package catalogue

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"treeline/internal/call"
)

// maxProblems is how many faulty fields one refusal names: enough to mend a call in one go.
const maxProblems = 3

// problem is one way in which arguments break their schema.
type problem struct {
	rank int // the lower, the more it explains
	at   []string
	text string
}

// checkSchema refuses arguments that break the tool's schema. What a refusal names does not depend on chance.
func (a *arguments) checkSchema() *call.Refusal {
	err := a.tool.rules.Validate(a.values)
	if err == nil {
		return nil
	}
	var invalid *jsonschema.ValidationError
	if !errors.As(err, &invalid) {
		return a.tool.refuse(nil, "the arguments are not what was expected")
	}
	problems := a.problems(invalid, nil)
	slices.SortFunc(problems, func(a, b problem) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), compareLocations(a.at, b.at), cmp.Compare(a.text, b.text))
	})
	var texts []string
	for i, p := range problems {
		if i == maxProblems {
			texts = append(texts, fmt.Sprintf("and %d more", len(problems)-maxProblems))
			break
		}
		texts = append(texts, p.text)
	}
	return a.tool.refuse(problems[0].at, "%s", strings.Join(texts, "; "))
}

// problems collects the leaves of a validation error.
func (a *arguments) problems(e *jsonschema.ValidationError, found []problem) []problem {
	if len(e.Causes) == 0 {
		return append(found, a.explain(e)...)
	}
	for _, cause := range e.Causes {
		found = a.problems(cause, found)
	}
	return found
}

const (
	rankUnknown = iota
	rankMissing
	rankWrong
)

func (a *arguments) explain(e *jsonschema.ValidationError) []problem {
	at := e.InstanceLocation
	schema, value := a.at(at)
	var found []problem
	switch k := e.ErrorKind.(type) {
	case *kind.AdditionalProperties:
		for _, name := range k.Properties {
			field := append(slices.Clone(at), name)
			found = append(found, problem{rankUnknown, field, unknownField(spell(at), name, schema)})
		}
		return found
	case *kind.Required:
		for _, name := range k.Missing {
			field := append(slices.Clone(at), name)
			found = append(found, problem{rankMissing, field,
				fmt.Sprintf("`%s` is missing: it must be %s", spell(field), expected(property(schema, name)))})
		}
		return found
	}
	text := fmt.Sprintf("`%s` must be %s, and %s came", spell(at), expected(schema), describe(value))
	if fix := fixOf(at, schema, value); fix != "" {
		text += ": " + fix
	}
	return []problem{{rankWrong, at, text}}
}

// at gives the part of the schema and of the arguments at a place.
func (a *arguments) at(place []string) (map[string]any, any) {
	schema, value := a.tool.schema, any(a.values)
	for _, token := range place {
		switch v := value.(type) {
		case map[string]any:
			schema, value = property(schema, token), v[token]
		case []any:
			schema, _ = schema["items"].(map[string]any)
			if i, err := strconv.Atoi(token); err == nil && i >= 0 && i < len(v) {
				value = v[i]
			}
		}
	}
	return schema, value
}

func property(schema map[string]any, name string) map[string]any {
	properties, _ := schema["properties"].(map[string]any)
	found, _ := properties[name].(map[string]any)
	return found
}

// compareLocations orders places as a reader comes to them: by field, indexes by number, the outer before the inner.
func compareLocations(a, b []string) int {
	return slices.CompareFunc(a, b, func(x, y string) int {
		i, errX := strconv.Atoi(x)
		j, errY := strconv.Atoi(y)
		if errX == nil && errY == nil {
			return cmp.Compare(i, j)
		}
		return cmp.Compare(x, y)
	})
}

// refuse makes the refusal of arguments. The example is one that has the field at the given place.
func (t Tool) refuse(at []string, format string, args ...any) *call.Refusal {
	field := ""
	if len(at) > 0 {
		field = at[0]
	}
	return call.Refuse(call.InvalidArguments, "Invalid arguments for %s, nothing was done: %s. Example: %s",
		t.Name, strings.TrimSuffix(fmt.Sprintf(format, args...), "."), t.example(field))
}

// example gives the first of the schema's examples that has a field, else the first that has any.
func (t Tool) example(field string) string {
	field, _, _ = strings.Cut(field, "[")
	best := "{}"
	for i := len(t.examples) - 1; i >= 0; i-- {
		if e := string(t.examples[i]); e != "{}" {
			best = e
		}
	}
	for _, e := range t.examples {
		if strings.Contains(string(e), strconv.Quote(field)+":") {
			return string(e)
		}
	}
	return best
}
