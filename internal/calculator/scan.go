package calculator

import (
	"fmt"
	"strings"
	"unicode"
)

type tokenKind int

const (
	tokenEnd tokenKind = iota
	tokenNumber
	tokenName
	tokenSign // one of + - * / ^ ( ) ,
)

// token is one word of an expression; text is its characters, at its position counted from 1.
type token struct {
	kind     tokenKind
	text     string
	position int
}

func (t token) is(sign string) bool { return t.kind == tokenSign && t.text == sign }

// scanner cuts an expression into tokens. A character that can begin none is refused where it stands.
type scanner struct {
	runes []rune
	at    int // index of the next character
}

func (s *scanner) peek(ahead int) rune {
	if s.at+ahead < len(s.runes) {
		return s.runes[s.at+ahead]
	}
	return 0
}

func isDigit(r rune) bool { return '0' <= r && r <= '9' }

func isNameStart(r rune) bool { return r == '_' || unicode.IsLetter(r) }

func isNamePart(r rune) bool { return isNameStart(r) || isDigit(r) }

func (s *scanner) next() (token, error) {
	for s.at < len(s.runes) && unicode.IsSpace(s.runes[s.at]) {
		s.at++
	}
	start := s.at
	if start == len(s.runes) {
		return token{tokenEnd, "", start + 1}, nil
	}
	r := s.runes[start]
	switch {
	case isDigit(r), r == '.':
		return s.number()
	case r == '_' && start > 0 && isDigit(s.runes[start-1]):
		return token{}, errorAt(start+1, `"_" is not a group separator; write the digits of a number together, as in 1000.`)
	case isNameStart(r):
		for s.at < len(s.runes) && isNamePart(s.runes[s.at]) {
			s.at++
		}
		return token{tokenName, string(s.runes[start:s.at]), start + 1}, nil
	case strings.ContainsRune("+-*/^(),", r):
		s.at++
		return token{tokenSign, string(r), start + 1}, nil
	}
	return token{}, s.strange(r)
}

// number reads a decimal or scientific number: digits, a point with digits on at least one side of it, an exponent.
func (s *scanner) number() (token, error) {
	start := s.at
	whole := s.digits()
	fraction := 0
	if s.peek(0) == '.' {
		s.at++
		fraction = s.digits()
	}
	if whole+fraction == 0 {
		return token{}, errorAt(start+1, `"." has no digit beside it; write 0.5, .5 or 5.`)
	}
	if whole > 1 && s.runes[start] == '0' {
		return token{}, errorAt(start+1, "a number's whole part of several digits does not begin with 0. "+
			"If a comma before it was meant to group digits, leave the comma out, as in 1000.")
	}
	if e := s.peek(0); e == 'e' || e == 'E' {
		mark := s.at
		s.at++
		if sign := s.peek(0); sign == '+' || sign == '-' {
			s.at++
		}
		if s.digits() == 0 {
			return token{}, errorAt(mark+1, `the exponent after "%c" has no digits; write it like 1e6 or 1e-6.`, e)
		}
	}
	if s.peek(0) == '.' {
		return token{}, errorAt(s.at+1, "there is one point too many in this number.")
	}
	return token{tokenNumber, string(s.runes[start:s.at]), start + 1}, nil
}

func (s *scanner) digits() int {
	start := s.at
	for isDigit(s.peek(0)) {
		s.at++
	}
	return s.at - start
}

// lookalike gives what to write for a character that people and models write in place of one of the grammar.
func lookalike(r rune) string {
	switch r {
	case '\u2212', '\u2010', '\u2011', '\u2012', '\u2013', '\u2014', '\u2015', '\ufe63', '\uff0d':
		return "-"
	case '\u00d7', '\u00b7', '\u22c5', '\u2219', '\u2217', '\u2715', '\u2a2f', '\uff0a', '\u2022':
		return "*"
	case '\u00f7', '\u2215', '\u2044', '\uff0f', ':':
		return "/"
	case '\uff0b', '\ufe62':
		return "+"
	case '\uff3e', '\u02c6', '\u2191':
		return "^"
	case '\u00b2':
		return "^2"
	case '\u00b3':
		return "^3"
	case '\u221a':
		return "sqrt(...)"
	case '[', '{', '\uff08':
		return "("
	case ']', '}', '\uff09':
		return ")"
	case '\uff0c', '\u066b', ';':
		return ","
	case '\uff0e':
		return "."
	}
	return ""
}

// strange says why a character that begins no token is refused.
func (s *scanner) strange(r rune) *Error {
	position := s.at + 1
	if with := lookalike(r); with != "" {
		return errorAt(position, "%s is not understood here; write %s instead.", show(r), with)
	}
	switch r {
	case '=':
		return errorAt(position, `there is no assignment and no comparison ("="); write one expression that has a value.`)
	case '%':
		return errorAt(position, `there is no percent and no remainder operator ("%%"); for 5 percent write 5/100.`)
	case '\'', '\u2019':
		if s.at > 0 && isDigit(s.runes[s.at-1]) {
			return errorAt(position, "%s is not a group separator; write the digits of a number together, as in 1000.", show(r))
		}
	}
	if unicode.IsDigit(r) {
		return errorAt(position, "%s is not a digit from 0 to 9; write numbers with those.", show(r))
	}
	return errorAt(position, "%s is not understood here. An expression has numbers, + - * / ^, parentheses, "+
		"and min, max, abs, sqrt, round.", show(r))
}

// show names a character so that it cannot be mistaken for another.
func show(r rune) string {
	switch {
	case r > 0x20 && r < 0x7f:
		return fmt.Sprintf("%q", string(r))
	case unicode.IsGraphic(r) && r != unicode.ReplacementChar:
		return fmt.Sprintf("%q (U+%04X)", string(r), r)
	}
	return fmt.Sprintf("U+%04X", r)
}
