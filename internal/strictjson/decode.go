// Package strictjson reads JSON that comes from outside. It takes exactly RFC 8259 and refuses what parsers are known to
// disagree about: a key given twice, half a surrogate pair, invalid UTF-8, bytes after the value. What it refuses, it
// refuses with a position and a sentence that the sender can act on. It also compares documents in a canonical form and
// follows JSON Pointers (RFC 6901) into them.
package strictjson

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Limits bound what is read. Time and memory are linear in the length of the input, which the caller bounds.
type Limits struct {
	// Depth is how far objects and arrays may nest.
	Depth int
	// NumberLength is the longest number, in characters.
	NumberLength int
	// NumberExponent bounds the exponent that a number is written with, either way. Readers of exact numbers write all
	// its zeros out.
	NumberExponent int
}

// DefaultLimits are enough for everything that people and models write.
func DefaultLimits() Limits { return Limits{Depth: 64, NumberLength: 1000, NumberExponent: 1000} }

// Decode reads one JSON value: a map[string]any, []any, string, json.Number (as it was written), bool or nil. U+0000 may
// be part of a string, written as an escape. Every error is an *Error.
func Decode(b []byte, limits Limits) (any, error) {
	d := decoder{s: string(b), limits: limits}
	v, err := d.document()
	if err != nil {
		err.locate(d.s)
		return nil, err
	}
	return v, nil
}

// decoder is recursive descent over s; the depth is counted before each recursion.
type decoder struct {
	s      string
	at     int
	depth  int
	limits Limits
}

func (d *decoder) document() (any, *Error) {
	if i := firstInvalid(d.s); i >= 0 {
		return nil, errorAt(InvalidUTF8, i, "byte 0x%02x is not valid UTF-8. Send the text as UTF-8.", d.s[i])
	}
	if strings.HasPrefix(d.s, "\ufeff") {
		return nil, errorAt(Syntax, 0, "the JSON begins with a byte order mark. Leave it out.")
	}
	d.space()
	if d.at == len(d.s) {
		return nil, errorAt(Syntax, d.at, "there is no JSON value: nothing was sent.")
	}
	v, err := d.value()
	if err != nil {
		return nil, err
	}
	d.space()
	if d.at < len(d.s) {
		return nil, errorAt(TrailingData, d.at, "%s comes after the end of the JSON value. Send one value and nothing else.", d.here())
	}
	return v, nil
}

// firstInvalid gives the offset of the first byte that is not UTF-8, or -1.
func firstInvalid(s string) int {
	if utf8.ValidString(s) {
		return -1
	}
	for i, r := range s {
		if r == utf8.RuneError {
			if _, n := utf8.DecodeRuneInString(s[i:]); n == 1 {
				return i
			}
		}
	}
	return -1
}

func (d *decoder) space() {
	for d.at < len(d.s) {
		switch d.s[d.at] {
		case ' ', '\t', '\n', '\r':
			d.at++
		default:
			return
		}
	}
}

// here describes the character that is next, for an error.
func (d *decoder) here() string {
	if d.at >= len(d.s) {
		return "the end of the input"
	}
	r, _ := utf8.DecodeRuneInString(d.s[d.at:])
	if r < 0x20 || r == 0x7f || !strconv.IsPrint(r) {
		return fmt.Sprintf("the character U+%04X", r)
	}
	return fmt.Sprintf("%q", string(r))
}

// take moves past c if it is next.
func (d *decoder) take(c byte) bool {
	if d.at < len(d.s) && d.s[d.at] == c {
		d.at++
		return true
	}
	return false
}

func (d *decoder) value() (any, *Error) {
	if d.at == len(d.s) {
		return nil, errorAt(Syntax, d.at, "the JSON ends where a value should follow. It may have been cut off.")
	}
	switch c := d.s[d.at]; {
	case c == '{':
		return d.nested((*decoder).object)
	case c == '[':
		return d.nested((*decoder).array)
	case c == '"':
		s, err := d.text()
		if err != nil {
			return nil, err
		}
		return s, nil
	case c == '-' || '0' <= c && c <= '9':
		return d.number()
	}
	return d.word()
}

func (d *decoder) word() (any, *Error) {
	end := d.at
	for end < len(d.s) && end < d.at+20 && (d.s[end] == '_' || 'a' <= d.s[end]|0x20 && d.s[end]|0x20 <= 'z') {
		end++
	}
	word := d.s[d.at:end]
	var v any
	switch word {
	case "true":
		v = true
	case "false":
		v = false
	case "null":
	case "":
		return nil, errorAt(Syntax, d.at, "%s stands where a value should be. Strings and keys are written in double quotes.", d.here())
	default:
		return nil, errorAt(Syntax, d.at, "%q is no JSON value. The words of JSON are true, false and null; strings are written in double quotes.", word)
	}
	d.at = end
	return v, nil
}

// nested reads an object or an array, one level deeper.
func (d *decoder) nested(read func(*decoder) (any, *Error)) (any, *Error) {
	if d.depth >= d.limits.Depth {
		return nil, errorAt(TooDeep, d.at, "objects and arrays nest deeper than %d levels.", d.limits.Depth)
	}
	d.depth++
	defer func() { d.depth-- }()
	d.at++ // the opening bracket
	return read(d)
}

func (d *decoder) object() (any, *Error) {
	object := map[string]any{}
	if d.space(); d.take('}') {
		return object, nil
	}
	for {
		start := d.at
		if d.at == len(d.s) || d.s[d.at] != '"' {
			return nil, errorAt(Syntax, start, "%s stands where a key in double quotes should be.", d.here())
		}
		key, err := d.text()
		if err != nil {
			return nil, err
		}
		if _, twice := object[key]; twice {
			return nil, errorAt(DuplicateKey, start, "the key %s is given twice in one object. Give it once.", quote(key))
		}
		if d.space(); !d.take(':') {
			return nil, errorAt(Syntax, d.at, `%s stands where the ":" after the key %s should be.`, d.here(), quote(key))
		}
		d.space()
		v, err := d.value()
		if err != nil {
			return nil, err.under(key)
		}
		object[key] = v
		if d.space(); d.take('}') {
			return object, nil
		}
		if !d.take(',') {
			return nil, errorAt(Syntax, d.at, `%s stands where "," or "}" should be.`, d.here())
		}
		if d.space(); d.at < len(d.s) && d.s[d.at] == '}' {
			return nil, errorAt(Syntax, d.at, `a "," comes before this "}". Leave it out.`)
		}
	}
}

func (d *decoder) array() (any, *Error) {
	array := []any{}
	if d.space(); d.take(']') {
		return array, nil
	}
	for {
		v, err := d.value()
		if err != nil {
			return nil, err.under(strconv.Itoa(len(array)))
		}
		array = append(array, v)
		if d.space(); d.take(']') {
			return array, nil
		}
		if !d.take(',') {
			return nil, errorAt(Syntax, d.at, `%s stands where "," or "]" should be.`, d.here())
		}
		if d.space(); d.at < len(d.s) && d.s[d.at] == ']' {
			return nil, errorAt(Syntax, d.at, `a "," comes before this "]". Leave it out.`)
		}
	}
}

// text reads a string. Without escapes it is a part of the input; else it is built.
func (d *decoder) text() (string, *Error) {
	open := d.at
	d.at++
	start := d.at
	var built []byte
	for d.at < len(d.s) {
		switch c := d.s[d.at]; {
		case c == '"':
			s := d.s[start:d.at]
			d.at++
			if built != nil {
				s = string(append(built, s...))
			}
			return s, nil
		case c == '\\':
			if built == nil {
				built = make([]byte, 0, d.at-start+16)
			}
			built = append(built, d.s[start:d.at]...)
			r, err := d.escape()
			if err != nil {
				return "", err
			}
			built = utf8.AppendRune(built, r)
			start = d.at
		case c < 0x20:
			return "", errorAt(Syntax, d.at, "the control character U+%04X stands bare in a string. Write it as an escape: %s.", c, escaped(rune(c)))
		default:
			d.at++
		}
	}
	return "", errorAt(Syntax, open, "the string that begins here is not closed. The JSON may have been cut off, or a double quote in it is not escaped.")
}

// escape reads what follows a backslash, both halves of a surrogate pair included.
func (d *decoder) escape() (rune, *Error) {
	at := d.at
	d.at++
	if d.at == len(d.s) {
		return 0, errorAt(Syntax, at, "the JSON ends in the middle of an escape. It may have been cut off.")
	}
	c := d.s[d.at]
	d.at++
	if i := strings.IndexByte(`"\/bfnrt`, c); i >= 0 {
		return rune("\"\\/\b\f\n\r\t"[i]), nil
	}
	if c != 'u' {
		d.at--
		return 0, errorAt(Syntax, at, `a backslash before %s is no escape of JSON. For a backslash itself write two.`, d.here())
	}
	r, ok := d.hex()
	if !ok {
		return 0, errorAt(Syntax, at, `\u is not followed by four hexadecimal digits.`)
	}
	if !utf16.IsSurrogate(r) {
		return r, nil
	}
	if strings.HasPrefix(d.s[d.at:], `\u`) {
		d.at += 2
		if low, ok := d.hex(); ok {
			if whole := utf16.DecodeRune(r, low); whole != utf8.RuneError {
				return whole, nil
			}
		}
	}
	return 0, errorAt(LoneSurrogate, at, `\u%04x is half of a surrogate pair without its other half, which is no character.`, r)
}

func (d *decoder) hex() (rune, bool) {
	if len(d.s)-d.at < 4 {
		return 0, false
	}
	var r rune
	for _, c := range []byte(d.s[d.at : d.at+4]) {
		switch {
		case '0' <= c && c <= '9':
			r = r<<4 | rune(c-'0')
		case 'a' <= c|0x20 && c|0x20 <= 'f':
			r = r<<4 | rune(c|0x20-'a'+10)
		default:
			return 0, false
		}
	}
	d.at += 4
	return r, true
}

func (d *decoder) digits() int {
	start := d.at
	for d.at < len(d.s) && '0' <= d.s[d.at] && d.s[d.at] <= '9' {
		d.at++
	}
	return d.at - start
}

func (d *decoder) number() (any, *Error) {
	start := d.at
	d.take('-')
	first := d.at
	switch n := d.digits(); {
	case n == 0:
		return nil, errorAt(Syntax, d.at, "%s stands where the digits of a number should be.", d.here())
	case n > 1 && d.s[first] == '0':
		return nil, errorAt(Syntax, first, "a number of several digits does not begin with 0.")
	}
	if d.take('.') && d.digits() == 0 {
		return nil, errorAt(Syntax, d.at, "%s stands where a digit after the point should be.", d.here())
	}
	if d.take('e') || d.take('E') {
		mark := d.at
		if !d.take('-') {
			d.take('+')
		}
		if d.digits() == 0 {
			return nil, errorAt(Syntax, d.at, "%s stands where the digits of an exponent should be.", d.here())
		}
		if n, err := strconv.Atoi(d.s[mark:d.at]); err != nil || max(n, -n) > d.limits.NumberExponent {
			return nil, errorAt(NumberTooLarge, start, "the exponent of this number is beyond %d.", d.limits.NumberExponent)
		}
	}
	if d.at-start > d.limits.NumberLength {
		return nil, errorAt(NumberTooLarge, start, "this number is longer than %d characters.", d.limits.NumberLength)
	}
	return json.Number(d.s[start:d.at]), nil
}
