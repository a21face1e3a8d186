package strictjson

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Kind is what is wrong with a document.
type Kind string

// The kinds of errors.
const (
	// Syntax is text that is not JSON.
	Syntax Kind = "syntax"
	// DuplicateKey is a key that one object has twice.
	DuplicateKey Kind = "duplicate_key"
	// TooDeep is nesting past Limits.Depth.
	TooDeep Kind = "too_deep"
	// InvalidUTF8 is a byte that is no part of UTF-8 text.
	InvalidUTF8 Kind = "invalid_utf8"
	// LoneSurrogate is an escape for half a surrogate pair without the other.
	LoneSurrogate Kind = "lone_surrogate"
	// TrailingData is anything but space after the value.
	TrailingData Kind = "trailing_data"
	// NumberTooLarge is a number past Limits.NumberLength or Limits.NumberExponent.
	NumberTooLarge Kind = "number_too_large"
)

// Error is the reason why a document is refused.
type Error struct {
	Kind Kind
	// Offset is the byte that the reason is about, counted from 0.
	Offset int
	// Line and Column, in characters, are the same place, counted from 1.
	Line, Column int
	// Pointer is the JSON Pointer of the value in which it was found, "" for the document itself.
	Pointer string
	// Reason is a sentence or two for the sender.
	Reason string
}

func (e *Error) Error() string {
	where := ""
	if e.Pointer != "" {
		where = ", in " + clip(e.Pointer)
	}
	return fmt.Sprintf("line %d, column %d (byte %d)%s: %s", e.Line, e.Column, e.Offset, where, e.Reason)
}

func errorAt(kind Kind, offset int, format string, args ...any) *Error {
	return &Error{Kind: kind, Offset: offset, Reason: fmt.Sprintf(format, args...)}
}

// under adds the key or index below which e was found.
func (e *Error) under(key string) *Error {
	e.Pointer = "/" + escapeToken(key) + e.Pointer
	return e
}

// locate sets the line and the column from the offset.
func (e *Error) locate(s string) {
	before := s[:e.Offset]
	e.Line = strings.Count(before, "\n") + 1
	e.Column = utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:]) + 1
}

// longest is how many characters of the sender's own words an error repeats.
const longest = 80

func clip(s string) string {
	n := 0
	for i := range s {
		if n == longest {
			return s[:i] + "..."
		}
		n++
	}
	return s
}

func quote(s string) string { return strconv.Quote(clip(s)) }

// escaped is how a control character is written in a string.
func escaped(r rune) string {
	if i := strings.IndexRune("\b\f\n\r\t", r); i >= 0 {
		return `\` + "bfnrt"[i:i+1]
	}
	return fmt.Sprintf(`\u%04x`, r)
}
