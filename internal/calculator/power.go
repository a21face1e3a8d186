package calculator

import (
	"math"
	"math/big"
)

const (
	// maxPowerDigits bounds the exponents that are worked out: below 1e18. Larger ones give something between 1e-1000
	// and 1e1000 only for a base that differs from 1 by less than 3e-15.
	maxPowerDigits = 18
	// maxRoot is the highest root for which an exact value is looked for.
	maxRoot = 64
)

// power gives x to the y. By convention 0^0 is 1, as in every calculator that gives it a value.
func power(x, y *big.Rat, position int) (*big.Rat, error) {
	one := big.NewRat(1, 1)
	switch {
	case y.Sign() == 0 || x.Cmp(one) == 0:
		return one, nil
	case x.Sign() == 0 && y.Sign() < 0:
		return nil, errorAt(position, "division by zero: 0 has no negative power.")
	case x.Sign() == 0:
		return x, nil
	case x.Sign() < 0 && !y.IsInt():
		return nil, errorAt(position, "a negative number to a power that is not whole is not a real number.")
	}
	if x.Sign() < 0 {
		v, err := power(new(big.Rat).Neg(x), y, position)
		if err == nil && y.Num().Bit(0) == 1 {
			v = new(big.Rat).Neg(v)
		}
		return v, err
	}
	if err := checkPower(x, y, position); err != nil {
		return nil, err
	}
	if y.Denom().IsInt64() && y.Denom().Int64() <= maxRoot {
		q := int(y.Denom().Int64())
		if root := exactRoot(x, q); root != nil {
			if v := exactPower(root, y.Num()); v != nil {
				return v, nil
			}
		}
	}
	return roundedPower(x, y), nil
}

// checkPower refuses, from an estimate, what cannot end within the bounds of a value; x > 0 and not 1.
func checkPower(x, y *big.Rat, position int) error {
	// Half a percent is left for what the estimate may be off; what passes it is checked exactly afterwards.
	const limit = 1.005 * MaxExponent * math.Ln10
	f, _ := y.Float64() // at most 1e1000: may be infinite, which compares as it should
	switch z := logarithm(x) * f; {
	case z > limit:
		return overflow(position)
	case z < -limit:
		return underflow(position)
	}
	if magnitude(y) >= maxPowerDigits {
		return errorAt(position, "the exponent is beyond 1e%d, which is not worked out.", maxPowerDigits)
	}
	return nil
}

// logarithm estimates ln x for x > 0 and not 1, to at least ten digits; it is never 0.
func logarithm(x *big.Rat) float64 {
	difference, _ := new(big.Rat).Sub(x, big.NewRat(1, 1)).Float64()
	if math.Abs(difference) < 0.5 {
		if difference == 0 { // closer to 1 than a float can tell
			return math.Copysign(math.SmallestNonzeroFloat64, float64(x.Cmp(big.NewRat(1, 1))))
		}
		return math.Log1p(difference)
	}
	digits, exponent := decimalDigits(x, 17)
	return math.Log(float64(digits.Int64())) + float64(exponent)*math.Ln10
}

// exactPower gives x to the whole power n if its fraction stays within exactBits, else nil.
func exactPower(x *big.Rat, n *big.Int) *big.Rat {
	longest := max(x.Num().BitLen(), x.Denom().BitLen())
	times := new(big.Int).Abs(n)
	if !times.IsInt64() || times.Int64() > exactBits || int(times.Int64())*longest > exactBits {
		return nil
	}
	// The powers of a reduced fraction's parts have no common factor, but SetFrac puts the sign right.
	numerator := new(big.Int).Exp(x.Num(), times, nil)
	denominator := new(big.Int).Exp(x.Denom(), times, nil)
	if n.Sign() < 0 {
		numerator, denominator = denominator, numerator
	}
	return new(big.Rat).SetFrac(numerator, denominator)
}

// exactRoot gives the q-th root of x > 0 if it is a fraction, else nil.
func exactRoot(x *big.Rat, q int) *big.Rat {
	if q == 1 {
		return x
	}
	n := integerRoot(x.Num(), q)
	if n == nil {
		return nil
	}
	d := integerRoot(x.Denom(), q)
	if d == nil {
		return nil
	}
	return new(big.Rat).SetFrac(n, d)
}

// integerRoot gives the q-th root of x > 0 if it is whole, else nil. Newton's method comes down on it from above.
func integerRoot(x *big.Int, q int) *big.Int {
	var root *big.Int
	if q == 2 {
		root = new(big.Int).Sqrt(x)
	} else {
		root = new(big.Int).Lsh(big.NewInt(1), uint((x.BitLen()+q-1)/q))
		less, exponent := big.NewInt(int64(q-1)), big.NewInt(int64(q))
		for {
			next := new(big.Int).Exp(root, less, nil)
			next.Quo(x, next)
			next.Add(next, new(big.Int).Mul(root, less))
			next.Quo(next, exponent)
			if next.Cmp(root) >= 0 {
				break
			}
			root = next
		}
	}
	if new(big.Int).Exp(root, big.NewInt(int64(q)), nil).Cmp(x) != 0 {
		return nil
	}
	return root
}

// sqrt gives the square root of x >= 0: exact where it is a fraction, else to keptDigits.
func sqrt(x *big.Rat) *big.Rat {
	if x.Sign() == 0 {
		return x
	}
	if root := exactRoot(x, 2); root != nil {
		return root
	}
	places := keptDigits - magnitude(x)/2
	n, d := scaled(x, 2*places)
	return fromDecimal(new(big.Int).Sqrt(new(big.Int).Quo(n, d)), -places)
}
