package catalogue

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// shownChars is how much of what came a refusal repeats.
const shownChars = 60

// quoted spells s in quotes, cut where it is long.
func quoted(s string) string {
	if utf8.RuneCountInString(s) <= shownChars {
		return strconv.Quote(s)
	}
	n := 0
	for i := range s {
		if n == shownChars {
			return strconv.Quote(s[:i]) + "..."
		}
		n++
	}
	return strconv.Quote(s)
}

// describe says briefly what a JSON value is.
func describe(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return "the boolean " + strconv.FormatBool(v)
	case json.Number:
		s := string(v)
		if len(s) > shownChars {
			s = s[:shownChars] + "..."
		}
		return "the number " + s
	case string:
		return "the string " + quoted(v)
	case []any:
		return fmt.Sprintf("an array of %d", len(v))
	case map[string]any:
		return "an object"
	}
	return "something else"
}

// expected says what a schema asks for.
func expected(schema map[string]any) string {
	if choices, ok := schema["enum"].([]any); ok {
		var words []string
		for _, c := range choices {
			words = append(words, quoted(fmt.Sprint(c)))
		}
		return strings.Join(words, " or ")
	}
	switch schema["type"] {
	case "string":
		switch {
		case schema["maxLength"] != nil && schema["minLength"] != nil:
			return fmt.Sprintf("a string that is not empty, of at most %v characters", schema["maxLength"])
		case schema["maxLength"] != nil:
			return fmt.Sprintf("a string of at most %v characters", schema["maxLength"])
		case schema["minLength"] != nil:
			return "a string that is not empty"
		}
		return "a string"
	case "integer":
		return "a whole number" + bounds(schema["minimum"], schema["maximum"])
	case "boolean":
		return "true or false"
	case "array":
		items, _ := schema["items"].(map[string]any)
		return "an array" + count(schema["minItems"], schema["maxItems"]) + " " + kindOfItems(items)
	}
	return "an object"
}

func bounds(least, most any) string {
	switch {
	case least != nil && most != nil:
		return fmt.Sprintf(" from %v to %v", least, most)
	case least != nil:
		return fmt.Sprintf(", %v or more", least)
	}
	return ""
}

func count(least, most any) string {
	switch {
	case least != nil && most != nil:
		return fmt.Sprintf(" of %v to %v", least, most)
	case most != nil:
		return fmt.Sprintf(" of at most %v", most)
	case least != nil:
		return fmt.Sprintf(" of %v or more", least)
	}
	return " of"
}

func kindOfItems(schema map[string]any) string {
	if schema["type"] == "string" {
		return "strings"
	}
	return "objects"
}

var wholeNumber = regexp.MustCompile(`^-?[0-9]{1,15}$`)

// fixOf says how to mend a value of a wrong type, where that can be told.
func fixOf(at []string, schema map[string]any, value any) string {
	name := ""
	if len(at) > 0 {
		name = at[len(at)-1]
	}
	s, isString := value.(string)
	switch {
	case value == nil:
		return "leave the field out instead of giving null"
	case isString && schema["type"] == "integer" && wholeNumber.MatchString(strings.TrimSpace(s)):
		return fmt.Sprintf("write the number without quotes, %q: %s", name, strings.TrimSpace(s))
	case isString && schema["type"] == "boolean" && (s == "true" || s == "false"):
		return fmt.Sprintf("write it without quotes, %q: %s", name, s)
	case isString && schema["type"] == "array":
		items, _ := schema["items"].(map[string]any)
		if items["type"] == "string" {
			return fmt.Sprintf("write %q: [%s]", name, quoted(s))
		}
	case isString && schema["type"] == "object":
		return "write the object itself, not JSON inside a string"
	}
	return ""
}

// unknownField says which field is unknown, which one may have been meant, and which there are.
func unknownField(where, name string, schema map[string]any) string {
	properties, _ := schema["properties"].(map[string]any)
	known := slices.Sorted(maps.Keys(properties))
	in := ""
	if where != "" {
		in = "of `" + where + "` "
	}
	shown := name
	if utf8.RuneCountInString(name) > shownChars || strings.ContainsFunc(name, func(r rune) bool { return !strconv.IsPrint(r) || r == '`' }) {
		shown = quoted(name)
	}
	hint := ""
	if near := closest(name, known); near != "" {
		hint = fmt.Sprintf("did you mean `%s`? ", near)
	}
	return fmt.Sprintf("`%s` is not a field %s(%sthe fields are %s)", shown, in, hint, strings.Join(known, ", "))
}

// spell writes a place as files[1].path.
func spell(at []string) string {
	var b strings.Builder
	for _, token := range at {
		if _, err := strconv.Atoi(token); err == nil {
			b.WriteString("[" + token + "]")
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('.')
		}
		b.WriteString(token)
	}
	return b.String()
}

func item(field string, i int) string { return fmt.Sprintf("%s[%d]", field, i) }

func sortedKeys(m map[string]any) []string { return slices.Sorted(maps.Keys(m)) }
