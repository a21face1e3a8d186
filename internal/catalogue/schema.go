package catalogue

import (
	"cmp"
	"encoding/json"
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
	rank  int // the lower, the more it explains
	place []string
	fault jsonschema.ErrorKind
}

// checkSchema refuses arguments that break the tool's schema. What a refusal names does not depend on chance.
func (a *arguments) checkSchema() *call.Refusal {
	if r := a.checkCounts(); r != nil {
		return r
	}
	err := a.tool.rules.Validate(a.values)
	if err == nil {
		return nil
	}
	var invalid *jsonschema.ValidationError
	if !errors.As(err, &invalid) {
		return a.tool.refuse(nil, "the arguments are not what was expected")
	}
	var found problems
	found.collect(invalid)
	if len(found.first) == 0 {
		return a.tool.refuse(nil, "the arguments are not what was expected")
	}
	var texts []string
	for _, p := range found.first {
		texts = append(texts, a.explain(p))
	}
	if more := found.count - len(found.first); more > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", more))
	}
	return a.tool.refuse(found.first[0].place, "%s", strings.Join(texts, "; "))
}

// checkCounts refuses an array that is too long before the schema looks at each of what may be a million entries.
func (a *arguments) checkCounts() *call.Refusal {
	for _, name := range sortedKeys(a.tool.properties()) {
		array, ok := a.values[name].([]any)
		if !ok {
			continue
		}
		schema := property(a.tool.schema, name)
		most, ok := schema["maxItems"].(json.Number)
		if !ok {
			continue
		}
		if n, err := most.Int64(); err == nil && int64(len(array)) > n {
			return a.tool.refuse([]string{name}, "%s", wrong([]string{name}, schema, array))
		}
	}
	return nil
}

// problems keeps the first few of many problems and counts all.
type problems struct {
	first []problem
	count int
}

// collect goes through the leaves of a validation error.
func (ps *problems) collect(e *jsonschema.ValidationError) {
	for _, cause := range e.Causes {
		ps.collect(cause)
	}
	if len(e.Causes) > 0 {
		return
	}
	switch k := e.ErrorKind.(type) {
	case *kind.AdditionalProperties:
		for _, name := range k.Properties {
			ps.add(rankUnknown, e, name)
		}
	case *kind.Required:
		for _, name := range k.Missing {
			ps.add(rankMissing, e, name)
		}
	default:
		ps.add(rankWrong, e)
	}
}

// add counts a problem and keeps it if it is one of the first. The place is copied only then.
func (ps *problems) add(rank int, e *jsonschema.ValidationError, name ...string) {
	ps.count++
	p := problem{rank: rank, place: e.InstanceLocation, fault: e.ErrorKind}
	if len(name) > 0 {
		p.place = append(slices.Clone(p.place), name...)
	}
	at, _ := slices.BinarySearchFunc(ps.first, p, compareProblems)
	if at == maxProblems {
		return
	}
	ps.first = slices.Insert(ps.first, at, p)
	ps.first = ps.first[:min(len(ps.first), maxProblems)]
}

func compareProblems(a, b problem) int {
	return cmp.Or(cmp.Compare(a.rank, b.rank), compareLocations(a.place, b.place),
		strings.Compare(strings.Join(a.fault.KeywordPath(), "/"), strings.Join(b.fault.KeywordPath(), "/")))
}

// Ranks of problems.
const (
	rankUnknown = iota // a field that there is not: it often explains the others
	rankMissing
	rankWrong
)

// explain says what is wrong at one place.
func (a *arguments) explain(p problem) string {
	schema, value := a.at(p.place)
	switch p.rank {
	case rankUnknown:
		outer := p.place[:len(p.place)-1]
		schema, _ = a.at(outer)
		return unknownField(spell(outer), p.place[len(outer)], schema)
	case rankMissing:
		return fmt.Sprintf("`%s` is missing: it must be %s", spell(p.place), expected(schema))
	}
	return wrong(p.place, schema, value)
}

// wrong says what a value should have been and, where that can be told, how to mend it.
func wrong(place []string, schema map[string]any, value any) string {
	text := fmt.Sprintf("`%s` must be %s, and %s came", spell(place), expected(schema), describe(value))
	if fix := fixOf(place, schema, value); fix != "" {
		text += ": " + fix
	}
	return text
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

func (t Tool) properties() map[string]any {
	found, _ := t.schema["properties"].(map[string]any)
	return found
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
