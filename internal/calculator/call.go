package calculator

import "strings"

// arity is how many arguments a function takes; max 0 is any number.
type arity struct {
	min, max int
	words    string
}

// functionArity gives the arguments of a function; names are matched exactly, in lower case.
func functionArity(name string) (arity, bool) {
	switch name {
	case "min", "max":
		return arity{1, 0, "one or more arguments"}, true
	case "abs", "sqrt":
		return arity{1, 1, "exactly one argument"}, true
	case "round":
		return arity{1, 2, "one or two arguments (the number, and to how many decimal places)"}, true
	}
	return arity{}, false
}

// call parses a function's name with its arguments.
func (p *parser) call() error {
	name := p.token
	want, known := functionArity(name.text)
	if !known {
		return p.unknown(name)
	}
	if err := p.enter(name.position); err != nil {
		return err
	}
	defer p.leave()
	if err := p.advance(); err != nil {
		return err
	}
	open := p.token
	if !open.is("(") {
		return errorAt(name.position, "%s is a function: its arguments follow in parentheses, as in %s(2).", name.text, name.text)
	}
	if err := p.advance(); err != nil {
		return err
	}
	arguments := 0
	if !p.token.is(")") {
		for {
			if err := p.sum(); err != nil {
				return err
			}
			arguments++
			if !p.token.is(",") {
				break
			}
			if err := p.advance(); err != nil {
				return err
			}
		}
	}
	if err := p.closing(open); err != nil {
		return err
	}
	if arguments < want.min || want.max > 0 && arguments > want.max {
		return errorAt(name.position, "%s takes %s and was given %d.", name.text, want.words, arguments)
	}
	p.emit(name.text, name.position, arguments)
	return nil
}

// unknown refuses a name: of a function that is not there, or of a variable, of which there are none.
func (p *parser) unknown(name token) error {
	if _, known := functionArity(name.text); known {
		return errorAt(name.position, "an operator should stand before %s.", name.text)
	}
	if lower := strings.ToLower(name.text); lower != name.text {
		if _, known := functionArity(lower); known {
			return errorAt(name.position, "the name %q is not known; write it in lower case: %s.", name.text, lower)
		}
	}
	return errorAt(name.position, "the name %q is not known. There are no variables or constants, "+
		"and the only functions are min, max, abs, sqrt and round.", clip(name.text))
}

// clip shortens what a reason quotes.
func clip(s string) string {
	if r := []rune(s); len(r) > 40 {
		return string(r[:40]) + "..."
	}
	return s
}
