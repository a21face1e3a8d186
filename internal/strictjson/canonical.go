package strictjson

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Canonical gives the one form that all JSON documents of the same meaning share: keys sorted by their bytes, no space, as
// few escapes as there can be, and numbers by their exact value, so that 1, 1.0 and 10e-1 are equal and no two different
// numbers are. It reads with DefaultLimits; every error is an *Error.
func Canonical(b []byte) ([]byte, error) {
	v, err := Decode(b, DefaultLimits())
	if err != nil {
		return nil, err
	}
	return appendCanonical(make([]byte, 0, len(b)), v)
}

// Encode gives the canonical form of a value that Decode gave, or one made of the same types.
func Encode(v any) ([]byte, error) { return appendCanonical(nil, v) }

func appendCanonical(out []byte, v any) ([]byte, error) {
	var err error
	switch v := v.(type) {
	case nil:
		return append(out, "null"...), nil
	case bool:
		return strconv.AppendBool(out, v), nil
	case string:
		return appendText(out, v), nil
	case json.Number:
		return append(out, canonicalNumber(string(v))...), nil
	case []any:
		out = append(out, '[')
		for i, member := range v {
			if i > 0 {
				out = append(out, ',')
			}
			if out, err = appendCanonical(out, member); err != nil {
				return nil, err
			}
		}
		return append(out, ']'), nil
	case map[string]any:
		out = append(out, '{')
		for i, key := range slices.Sorted(maps.Keys(v)) {
			if i > 0 {
				out = append(out, ',')
			}
			out = append(appendText(out, key), ':')
			if out, err = appendCanonical(out, v[key]); err != nil {
				return nil, err
			}
		}
		return append(out, '}'), nil
	}
	return nil, fmt.Errorf("a value of type %T is not one of decoded JSON", v)
}

func appendText(out []byte, s string) []byte {
	out = append(out, '"')
	plain := 0
	for i := range len(s) {
		c := s[i]
		if c >= 0x20 && c != '"' && c != '\\' {
			continue
		}
		out = append(out, s[plain:i]...)
		plain = i + 1
		if c < 0x20 {
			out = append(out, escaped(rune(c))...)
		} else {
			out = append(out, '\\', c)
		}
	}
	return append(append(out, s[plain:]...), '"')
}

// canonicalNumber writes a JSON number as its digits without zeros at either end and a power of ten; small whole numbers
// are written plainly.
func canonicalNumber(s string) string {
	mantissa, exponentText, _ := strings.Cut(strings.ToLower(s), "e")
	sign := ""
	if strings.HasPrefix(mantissa, "-") {
		sign, mantissa = "-", mantissa[1:]
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	if digits == "" {
		return "0"
	}
	exponent := 0
	if exponentText != "" {
		n, err := strconv.Atoi(exponentText)
		if err != nil {
			return s // past every limit of reading: equal only to itself
		}
		exponent = n
	}
	exponent -= len(fraction)
	trimmed := strings.TrimRight(digits, "0")
	exponent += len(digits) - len(trimmed)
	const plain = 21
	switch {
	case exponent == 0:
		return sign + trimmed
	case exponent > 0 && len(trimmed)+exponent <= plain:
		return sign + trimmed + strings.Repeat("0", exponent)
	}
	return sign + withinExponent(trimmed, exponent)
}

// withinExponent writes digits times a power of ten with an exponent that Decode takes, moving the point where the plain
// form would be past it: what was read can be read again.
func withinExponent(digits string, exponent int) string {
	most := DefaultLimits().NumberExponent
	switch {
	case exponent > most:
		return digits + strings.Repeat("0", exponent-most) + "e" + strconv.Itoa(most)
	case exponent < -most:
		fraction := -most - exponent
		if pad := fraction - len(digits) + 1; pad > 0 {
			digits = strings.Repeat("0", pad) + digits
		}
		return digits[:len(digits)-fraction] + "." + digits[len(digits)-fraction:] + "e-" + strconv.Itoa(most)
	}
	return digits + "e" + strconv.Itoa(exponent)
}
