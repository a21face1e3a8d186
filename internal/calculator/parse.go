package calculator

import (
	"math/big"
	"strings"
	"unicode/utf8"
)

// step is one instruction of a program: it takes its operands from the top of the stack and puts its result there.
type step struct {
	name     string // "number", "negate", a binary operator's sign, or a function's name
	position int
	operands int
	number   *big.Rat
}

// program is an expression in postfix order. An expression is parsed to its end before any of it is worked out.
type program []step

// parser is recursive descent over the grammar
//
//	sum     = product { ("+" | "-") product }
//	product = unary { ("*" | "/") unary }
//	unary   = ("+" | "-") unary | power
//	power   = primary [ "^" unary ]
//	primary = number | "(" sum ")" | function "(" sum { "," sum } ")"
//
// so that "^" is right-associative and binds tighter than a sign before it, but takes a sign after it.
type parser struct {
	scan  scanner
	token token // the one that is looked at
	depth int
	out   program
}

func parse(expression string) (program, error) {
	// Measured before the copy to runes, so that a huge expression costs nothing.
	if len(expression) > MaxLength && utf8.RuneCountInString(expression) > MaxLength {
		return nil, errorAt(MaxLength+1, "the expression is longer than %d characters. Split it, or use run_code.", MaxLength)
	}
	p := &parser{scan: scanner{runes: []rune(expression)}}
	if err := p.advance(); err != nil {
		return nil, err
	}
	if p.token.kind == tokenEnd {
		return nil, errorAt(1, "the expression is empty.")
	}
	if err := p.sum(); err != nil {
		return nil, err
	}
	if p.token.kind != tokenEnd {
		return nil, p.leftOver()
	}
	return p.out, nil
}

func (p *parser) advance() (err error) {
	p.token, err = p.scan.next()
	return err
}

// enter counts one level of depth, before the recursion that it stands for.
func (p *parser) enter(position int) error {
	if p.depth == MaxDepth {
		return errorAt(position, "the expression is nested deeper than %d levels "+
			"(each parenthesis, call, unary sign and ^ is a level). Split it.", MaxDepth)
	}
	p.depth++
	return nil
}

func (p *parser) leave() { p.depth-- }

func (p *parser) emit(name string, position, operands int) {
	p.out = append(p.out, step{name: name, position: position, operands: operands})
}

func (p *parser) sum() error     { return p.chain("+-", p.product) }
func (p *parser) product() error { return p.chain("*/", p.unary) }

// chain parses operands joined by left-associative operators.
func (p *parser) chain(operators string, operand func() error) error {
	if err := operand(); err != nil {
		return err
	}
	for p.token.kind == tokenSign && strings.Contains(operators, p.token.text) {
		operator := p.token
		if err := p.advance(); err != nil {
			return err
		}
		if operator.is("*") && p.token.is("*") && p.token.position == operator.position+1 {
			return errorAt(operator.position, `"**" is not understood; write ^ for a power.`)
		}
		if err := operand(); err != nil {
			return err
		}
		p.emit(operator.text, operator.position, 2)
	}
	return nil
}

func (p *parser) unary() error {
	sign := p.token
	if !sign.is("-") && !sign.is("+") {
		return p.power()
	}
	if err := p.enter(sign.position); err != nil {
		return err
	}
	defer p.leave()
	if err := p.advance(); err != nil {
		return err
	}
	if err := p.unary(); err != nil {
		return err
	}
	if sign.is("-") {
		p.emit("negate", sign.position, 1)
	}
	return nil
}

func (p *parser) power() error {
	if err := p.primary(); err != nil {
		return err
	}
	operator := p.token
	if !operator.is("^") {
		return nil
	}
	if err := p.enter(operator.position); err != nil {
		return err
	}
	defer p.leave()
	if err := p.advance(); err != nil {
		return err
	}
	if err := p.unary(); err != nil {
		return err
	}
	p.emit("^", operator.position, 2)
	return nil
}

func (p *parser) primary() error {
	t := p.token
	switch {
	case t.kind == tokenNumber:
		number, err := parseNumber(t)
		if err != nil {
			return err
		}
		p.out = append(p.out, step{name: "number", position: t.position, number: number})
		return p.advance()
	case t.kind == tokenName:
		return p.call()
	case t.is("("):
		if err := p.enter(t.position); err != nil {
			return err
		}
		defer p.leave()
		if err := p.advance(); err != nil {
			return err
		}
		if err := p.sum(); err != nil {
			return err
		}
		return p.closing(t)
	case t.kind == tokenEnd:
		return errorAt(t.position, "the expression ends where a number or an opening parenthesis should follow.")
	}
	return errorAt(t.position, "%q stands where a number or an opening parenthesis should be.", t.text)
}

// closing expects the parenthesis that ends what open began.
func (p *parser) closing(open token) error {
	switch {
	case p.token.is(")"):
		return p.advance()
	case p.token.kind == tokenEnd:
		return errorAt(p.token.position, "the parenthesis opened at position %d is not closed.", open.position)
	}
	return p.leftOver()
}

// leftOver refuses a token that stands where an operator or the end should be.
func (p *parser) leftOver() error {
	t := p.token
	switch {
	case t.is(","):
		return errorAt(t.position, `"," only separates the arguments of a function. `+
			"Digits are not grouped and the decimal sign is a point: write 1000 and 1.5.")
	case t.is(")"):
		return errorAt(t.position, "this closing parenthesis has no opening one.")
	case t.kind == tokenName:
		return p.unknown(t)
	}
	return errorAt(t.position, "%q is left over: an operator or the end should be here. "+
		"Products are written with *, and the digits of a number together.", clip(t.text))
}
