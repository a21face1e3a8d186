// Package calculator works out arithmetic that a model wrote as text. It has its own grammar and its own parser, so that
// nothing but arithmetic can be asked of it, and every step is bounded before it is taken: no expression can cost much
// time or memory.
//
// Numbers are exact fractions for as long as they stay below a size that ordinary arithmetic never reaches, so that
// 1/3*3-1 is 0; past it, and for roots and powers that have no exact value, 100 digits are kept. Answers are rounded
// once, at the end, to 12 significant digits, halves away from zero.
package calculator

import "fmt"

// Limits of one expression and of the values in it.
const (
	// MaxLength is the longest expression, in characters.
	MaxLength = 4000
	// MaxDepth is how far parentheses, calls, unary signs and powers may nest; each is a level.
	MaxDepth = 64
	// MaxExponent bounds magnitudes: a value is 0 or lies between 1e-1000 and 1e1000.
	MaxExponent = 1000
	// SignificantDigits is how many digits an answer shows at most.
	SignificantDigits = 12
)

// Error is the reason why an expression has no value.
type Error struct {
	// Position is the character that the reason is about, counted from 1. It is one past the end where something is
	// missing there.
	Position int
	// Reason is one or two sentences for a model.
	Reason string
}

func (e *Error) Error() string { return fmt.Sprintf("position %d: %s", e.Position, e.Reason) }

func errorAt(position int, format string, args ...any) *Error {
	return &Error{Position: position, Reason: fmt.Sprintf(format, args...)}
}

// Entry is the answer to one expression: a value or an error, never both.
type Entry struct {
	Expression string `json:"expression"`
	Value      string `json:"value,omitempty"`
	Error      string `json:"error,omitempty"`
}

// Evaluate works out one expression. The value is written in decimal with at most 12 significant digits and no trailing
// zeros: plain from 1e-6 to below 1e21, else like 1.5e30. Every error is an *Error.
func Evaluate(expression string) (string, error) {
	p, err := parse(expression)
	if err != nil {
		return "", err
	}
	v, err := p.run()
	if err != nil {
		return "", err
	}
	return format(v), nil
}

// EvaluateAll works out each expression for itself, in order; one that has no value carries its reason.
func EvaluateAll(expressions []string) []Entry {
	entries := make([]Entry, len(expressions))
	for i, x := range expressions {
		entries[i].Expression = x
		v, err := Evaluate(x)
		if err != nil {
			entries[i].Error = err.Error()
			continue
		}
		entries[i].Value = v
	}
	return entries
}
