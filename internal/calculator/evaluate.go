package calculator

import "math/big"

// run works a program out on a stack. It does not recurse, and every value on the stack is bounded.
func (p program) run() (*big.Rat, error) {
	var stack []*big.Rat
	for _, s := range p {
		base := len(stack) - s.operands
		v, err := s.apply(stack[base:])
		if err != nil {
			return nil, err
		}
		if v, err = bounded(v, s.position); err != nil {
			return nil, err
		}
		stack = append(stack[:base], v)
	}
	return stack[0], nil
}

// apply gives the value of one step. Operands are never changed: a result may be one of them.
func (s step) apply(x []*big.Rat) (*big.Rat, error) {
	switch s.name {
	case "number":
		return s.number, nil
	case "negate":
		return new(big.Rat).Neg(x[0]), nil
	case "+":
		return new(big.Rat).Add(x[0], x[1]), nil
	case "-":
		return new(big.Rat).Sub(x[0], x[1]), nil
	case "*":
		return new(big.Rat).Mul(x[0], x[1]), nil
	case "/":
		if x[1].Sign() == 0 {
			return nil, errorAt(s.position, "division by zero.")
		}
		return new(big.Rat).Quo(x[0], x[1]), nil
	case "^":
		return power(x[0], x[1], s.position)
	case "abs":
		return new(big.Rat).Abs(x[0]), nil
	case "sqrt":
		if x[0].Sign() < 0 {
			return nil, errorAt(s.position, "the square root of a negative number is not a real number.")
		}
		return sqrt(x[0]), nil
	case "round":
		return s.round(x)
	case "min":
		return pick(x, -1), nil
	default: // "max"
		return pick(x, 1), nil
	}
}

// pick gives the operand that compares to all others as sign says.
func pick(x []*big.Rat, sign int) *big.Rat {
	best := x[0]
	for _, v := range x[1:] {
		if v.Cmp(best) == sign {
			best = v
		}
	}
	return best
}

// round rounds to a whole number, or to so many decimal places; negative ones round to tens, hundreds and so on.
func (s step) round(x []*big.Rat) (*big.Rat, error) {
	places := 0
	if len(x) == 2 {
		if !x[1].IsInt() {
			return nil, errorAt(s.position, "the number of decimal places, round's second argument, is not a whole number.")
		}
		// Values lie between 1e-1000 and 1e1000 and are shown with 12 digits: past these nothing is left to round,
		// or nothing is left.
		const most = MaxExponent + keptDigits
		switch n := x[1].Num(); {
		case n.Cmp(big.NewInt(most)) > 0:
			return x[0], nil
		case n.Cmp(big.NewInt(-most)) < 0:
			return new(big.Rat), nil
		default:
			places = int(n.Int64())
		}
	}
	return fromDecimal(nearest(scaled(x[0], places)), -places), nil
}
