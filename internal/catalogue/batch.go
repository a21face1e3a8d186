package catalogue

import (
	"strings"

	"treeline/internal/call"
	"treeline/internal/strictjson"
)

// decodeBatches turns every JSON-encoded string that stands where the schema has an array, and every one that stands in
// such an array where the schema has an object, into what it encodes. A string that encodes nothing of the kind is
// batch_malformed where a batch must have been meant; else it is left for the schema to refuse.
func (a *arguments) decodeBatches() *call.Refusal {
	for _, name := range sortedKeys(a.values) {
		of := arrayOf(a.tool.schema, name)
		if of == "" {
			continue
		}
		if encoded, ok := a.values[name].(string); ok {
			v, err := strictjson.Decode([]byte(encoded), strictjson.DefaultLimits())
			array, isArray := v.([]any)
			switch {
			case isArray:
				a.values[name] = array
				a.mended()
			case a.tool.Name == WriteFileTool || looksEncoded(encoded):
				return a.refuseBatch(name, describe(v), err)
			default:
				continue
			}
		}
		array, ok := a.values[name].([]any)
		if !ok || of != "object" {
			continue
		}
		for i, entry := range array {
			encoded, ok := entry.(string)
			if !ok {
				continue
			}
			v, err := strictjson.Decode([]byte(encoded), strictjson.DefaultLimits())
			object, isObject := v.(map[string]any)
			switch {
			case isObject:
				array[i] = object
				a.mended()
			case a.tool.Name == WriteFileTool || looksEncoded(encoded):
				return a.refuseBatch(item(name, i), describe(v), err)
			}
		}
	}
	return nil
}

// looksEncoded tells a string that was meant to encode an array or object from a plain one.
func looksEncoded(s string) bool {
	s = strings.TrimLeft(s, " \t\r\n")
	return strings.HasPrefix(s, "[") || strings.HasPrefix(s, "{")
}

func (a *arguments) refuseBatch(field, came string, err error) *call.Refusal {
	fault := "it encodes " + came
	if err != nil {
		fault = err.Error()
	}
	way := "Give a real array, not JSON inside a string. Example: " + a.tool.example(field)
	if a.tool.Name == WriteFileTool {
		way = "Use path and content directly, one file a call, without encoding anything: " + a.tool.example("content")
	}
	return call.Refuse(call.BatchMalformed, "Nothing was done: `%s` is a string that does not encode what belongs there (%s). %s",
		field, fault, way)
}

// arrayOf gives the type of the items of a field that the schema has as an array, else "".
func arrayOf(schema map[string]any, field string) string {
	node := property(schema, field)
	if node["type"] != "array" {
		return ""
	}
	items, _ := node["items"].(map[string]any)
	kind, _ := items["type"].(string)
	return kind
}
