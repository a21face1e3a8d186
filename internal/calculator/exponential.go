package calculator

import "math/big"

// floatBits is the precision of roots and powers that are not exact, about 132 digits: keptDigits, 18 more for what an
// exponent below 1e18 multiplies the error of a logarithm by, and some to spare for the rounding of each step.
const floatBits = 440

func newFloat() *big.Float { return new(big.Float).SetPrec(floatBits) }

// roundedPower gives x to the y as exp(y ln x) with keptDigits digits, for x > 0 and a y that checkPower let pass.
func roundedPower(x, y *big.Rat) *big.Rat {
	z := ln(x)
	z.Mul(z, newFloat().SetRat(y))
	v, _ := exp(z).Rat(nil)
	return fromDecimal(decimalDigits(v, keptDigits))
}

// ln gives the natural logarithm of x > 0 and not 1. The estimate has at least ten digits and each step of Halley's method
// trebles them: 30, 90, then all.
func ln(x *big.Rat) *big.Float {
	target := newFloat().SetRat(x)
	y := newFloat().SetFloat64(logarithm(x))
	for range 3 {
		e := exp(y)
		step := newFloat().Sub(target, e)
		step.Quo(step, e.Add(e, target))
		y.Add(y, step.Add(step, step))
	}
	return y
}

// exp gives e to the z, for |z| below 3,000. It halves z until the series is short, and squares as often afterwards.
func exp(z *big.Float) *big.Float {
	const small = -12 // the series is taken of a number below 2^small
	r := newFloat().Set(z)
	halvings := max(r.MantExp(nil)-small, 0)
	r.SetMantExp(r, -halvings)
	sum, term := newFloat().SetInt64(1), newFloat().SetInt64(1)
	for n := int64(1); term.Sign() != 0 && term.MantExp(nil) > -floatBits; n++ {
		term.Mul(term, r)
		term.Quo(term, newFloat().SetInt64(n))
		sum.Add(sum, term)
	}
	for range halvings {
		sum.Mul(sum, sum)
	}
	return sum
}
