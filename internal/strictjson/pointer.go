package strictjson

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// PointerKind is what is wrong with a JSON Pointer.
type PointerKind string

// The kinds of pointer errors.
const (
	// BadPointer is text that is no JSON Pointer, or an index that is none.
	BadPointer PointerKind = "bad_pointer"
	// NoSuchMember is a key, or an index, that the document does not have.
	NoSuchMember PointerKind = "no_such_member"
	// NotAContainer is a pointer that goes on below a string, number, boolean or null.
	NotAContainer PointerKind = "not_a_container"
)

// PointerError is the reason why a pointer leads nowhere.
type PointerError struct {
	Kind PointerKind
	// Pointer is what was asked, and At the part of it that was followed before the failure.
	Pointer, At string
	// Reason is a sentence or two for the sender.
	Reason string
}

func (e *PointerError) Error() string {
	return fmt.Sprintf("pointer %s: %s", quote(e.Pointer), e.Reason)
}

// Pointer follows an RFC 6901 JSON Pointer into a document that Decode gave; "" is the document itself. Every error is a
// *PointerError.
func Pointer(document any, pointer string) (any, error) {
	if pointer == "" {
		return document, nil
	}
	fail := func(kind PointerKind, at int, format string, args ...any) error {
		return &PointerError{Kind: kind, Pointer: pointer, At: pointer[:at], Reason: fmt.Sprintf(format, args...)}
	}
	if pointer[0] != '/' {
		return nil, fail(BadPointer, 0, `a pointer begins with "/", as in "/rows/0/name"; the empty one is the whole document.`)
	}
	// Checked as a whole first, so that a pointer is good or bad whatever the document.
	for i := range len(pointer) {
		if pointer[i] == '~' && (i+1 == len(pointer) || pointer[i+1] != '0' && pointer[i+1] != '1') {
			return nil, fail(BadPointer, 0, `"~" is written "~0" in a pointer, and "/" within a key "~1".`)
		}
	}
	v := document
	for at := 0; at < len(pointer); {
		end := len(pointer)
		if n := strings.IndexByte(pointer[at+1:], '/'); n >= 0 {
			end = at + 1 + n
		}
		token := unescapeToken(pointer[at+1 : end])
		kind, reason := NotAContainer, ""
		switch container := v.(type) {
		case map[string]any:
			kind, reason = member(container, token, &v)
		case []any:
			kind, reason = element(container, token, &v)
		default:
			reason = fmt.Sprintf("there is %s, which has no members.", describe(v))
		}
		if reason != "" {
			return nil, fail(kind, at, "at %s %s", quote(pointer[:at]), reason)
		}
		at = end
	}
	return v, nil
}

// member sets v to the object's member, or says why it cannot.
func member(object map[string]any, key string, v *any) (PointerKind, string) {
	found, ok := object[key]
	if !ok {
		return NoSuchMember, fmt.Sprintf("there is no key %s; %s.", quote(key), keys(object))
	}
	*v = found
	return "", ""
}

// element sets v to the array's element, or says why it cannot.
func element(array []any, token string, v *any) (PointerKind, string) {
	if token == "-" {
		return BadPointer, fmt.Sprintf(`there is an array of %d, and "-" names the place after its end, where nothing is.`, len(array))
	}
	if !isIndex(token) {
		return BadPointer, fmt.Sprintf("there is an array of %d, and %s is no index: write 0 for the first, without leading zeros.", len(array), quote(token))
	}
	i, err := strconv.Atoi(token)
	if err != nil || i >= len(array) {
		return NoSuchMember, fmt.Sprintf("there is an array of %d, counted from 0, without index %s.", len(array), clip(token))
	}
	*v = array[i]
	return "", ""
}

func isIndex(token string) bool {
	if token == "" || token[0] == '0' && len(token) > 1 {
		return false
	}
	return strings.Trim(token, "0123456789") == ""
}

func describe(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case string:
		return "a string"
	case bool:
		return "a boolean"
	}
	return "a number"
}

// keys lists some of an object's keys.
func keys(object map[string]any) string {
	if len(object) == 0 {
		return "the object is empty"
	}
	const most = 10
	names := slices.Sorted(maps.Keys(object))
	more := ""
	if len(names) > most {
		more = fmt.Sprintf(" and %d more", len(names)-most)
		names = names[:most]
	}
	for i, name := range names {
		names[i] = quote(name)
	}
	return "its keys are " + strings.Join(names, ", ") + more
}

func escapeToken(s string) string { return strings.NewReplacer("~", "~0", "/", "~1").Replace(s) }

func unescapeToken(s string) string { return strings.NewReplacer("~1", "/", "~0", "~").Replace(s) }
