package calculator

import (
	"math"
	"math/big"
	"strconv"
	"strings"
)

const (
	// exactBits bounds the numerator and the denominator of an exact value. 1e1000+1e-1000 needs 6,645.
	exactBits = 8192
	// keptDigits is how many significant digits a value keeps that is not exact any more.
	keptDigits = 100
)

// pow10 gives 10 to the n, for n from 0.
func pow10(n int) *big.Int { return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil) }

// scaled gives x times 10 to the n, for any sign of n, as a numerator and a denominator that are not reduced.
func scaled(x *big.Rat, n int) (numerator, denominator *big.Int) {
	switch {
	case n > 0:
		return new(big.Int).Mul(x.Num(), pow10(n)), x.Denom()
	case n < 0:
		return x.Num(), new(big.Int).Mul(x.Denom(), pow10(-n))
	}
	return x.Num(), x.Denom()
}

// nearest gives the integer nearest to numerator/denominator, halves away from zero.
func nearest(numerator, denominator *big.Int) *big.Int {
	twice := new(big.Int).Lsh(new(big.Int).Abs(numerator), 1)
	twice.Add(twice, denominator)
	twice.Quo(twice, new(big.Int).Lsh(denominator, 1))
	if numerator.Sign() < 0 {
		twice.Neg(twice)
	}
	return twice
}

// magnitude gives the decimal exponent of x, which is not 0: 10^e <= |x| < 10^(e+1).
func magnitude(x *big.Rat) int {
	// The bits tell the exponent to within one; a comparison settles it.
	bits := x.Num().BitLen() - x.Denom().BitLen()
	e := int(math.Floor(float64(bits-1) * math.Log10(2)))
	for {
		n, d := scaled(x, -(e + 1))
		if n.CmpAbs(d) < 0 {
			return e
		}
		e++
	}
}

// decimalDigits rounds x, which is not 0, to so many significant digits: x is about digits times 10^exponent, and digits
// has exactly count digits and the sign of x.
func decimalDigits(x *big.Rat, count int) (digits *big.Int, exponent int) {
	exponent = magnitude(x) - count + 1
	digits = nearest(scaled(x, -exponent))
	if digits.CmpAbs(pow10(count)) == 0 { // rounded up to one digit more
		digits.Quo(digits, big.NewInt(10))
		exponent++
	}
	return digits, exponent
}

// fromDecimal gives digits times 10^exponent.
func fromDecimal(digits *big.Int, exponent int) *big.Rat {
	if exponent >= 0 {
		return new(big.Rat).SetInt(new(big.Int).Mul(digits, pow10(exponent)))
	}
	return new(big.Rat).SetFrac(digits, pow10(-exponent))
}

// bounded keeps x within the bounds of a value: it refuses what is out of range and rounds what has grown too long.
func bounded(x *big.Rat, position int) (*big.Rat, error) {
	if x.Sign() == 0 {
		return x, nil
	}
	n, d := x.Num().BitLen(), x.Denom().BitLen()
	const safe = 3320 // 2^3320 < 1e1000
	if n-d > safe || d-n > safe {
		limit := pow10(MaxExponent)
		if n > d && x.Num().CmpAbs(new(big.Int).Mul(x.Denom(), limit)) > 0 {
			return nil, overflow(position)
		}
		if d > n && x.Denom().CmpAbs(new(big.Int).Mul(x.Num(), limit)) > 0 {
			return nil, underflow(position)
		}
	}
	if n <= exactBits && d <= exactBits {
		return x, nil
	}
	return fromDecimal(decimalDigits(x, keptDigits)), nil
}

func overflow(position int) *Error {
	return errorAt(position, "overflow: the value here is beyond 1e%d in magnitude.", MaxExponent)
}

func underflow(position int) *Error {
	return errorAt(position, "underflow: the value here is not 0 but smaller than 1e-%d in magnitude.", MaxExponent)
}

// parseNumber gives a literal's value. Its exponent is looked at before any power of ten is made.
func parseNumber(t token) (*big.Rat, error) {
	mantissa, exponentText, _ := strings.Cut(strings.ToLower(t.text), "e")
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	significant := strings.TrimRight(digits, "0")
	if significant == "" {
		return new(big.Rat), nil
	}
	// An exponent of any length is cut to one that is out of range whatever the digits.
	const far = 1 << 20
	exponent, err := 0, error(nil)
	if exponentText != "" {
		if exponent, err = strconv.Atoi(exponentText); err != nil || exponent > far || exponent < -far {
			exponent = far
			if exponentText[0] == '-' {
				exponent = -far
			}
		}
	}
	first := exponent - len(fraction) + len(digits) - 1 // the exponent of the first significant digit
	if first > MaxExponent || first == MaxExponent && significant != "1" {
		return nil, overflow(t.position)
	}
	if first < -MaxExponent {
		return nil, underflow(t.position)
	}
	n, _ := new(big.Int).SetString(significant, 10)
	return bounded(fromDecimal(n, first-len(significant)+1), t.position)
}

// format writes x as an answer.
func format(x *big.Rat) string {
	if x.Sign() == 0 {
		return "0"
	}
	n, exponent := decimalDigits(x, SignificantDigits)
	digits := new(big.Int).Abs(n).String()
	exponent += len(digits) - 1 // now that of the first digit
	digits = strings.TrimRight(digits, "0")
	sign := ""
	if x.Sign() < 0 {
		sign = "-"
	}
	switch {
	case exponent < -6 || exponent >= 21:
		if len(digits) > 1 {
			digits = digits[:1] + "." + digits[1:]
		}
		return sign + digits + "e" + strconv.Itoa(exponent)
	case exponent < 0:
		return sign + "0." + strings.Repeat("0", -exponent-1) + digits
	case exponent+1 >= len(digits):
		return sign + digits + strings.Repeat("0", exponent+1-len(digits))
	}
	return sign + digits[:exponent+1] + "." + digits[exponent+1:]
}
