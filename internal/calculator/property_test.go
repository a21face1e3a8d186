package calculator

import (
	"errors"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/apd/v3"
	"pgregory.net/rapid"
)

// tree draws an expression of + - * / and its exact value, nil where it divides by zero.
func tree(t *rapid.T, depth int) (string, *big.Rat) {
	if depth == 0 || rapid.IntRange(0, 3).Draw(t, "leaf") == 0 {
		s := rapid.StringMatching(`(0|[1-9][0-9]{0,8})(\.[0-9]{1,6})?(e-?[1-9])?`).Draw(t, "number")
		v, ok := new(big.Rat).SetString(s)
		if !ok {
			t.Fatalf("big.Rat does not read %s", s)
		}
		return s, v
	}
	left, x := tree(t, depth-1)
	right, y := tree(t, depth-1)
	sign := rapid.SampledFrom([]string{"+", "-", "*", "/"}).Draw(t, "operator")
	text := "(" + left + " " + sign + " " + right + ")"
	if x == nil || y == nil || sign == "/" && y.Sign() == 0 {
		return text, nil
	}
	v := new(big.Rat)
	switch sign {
	case "+":
		v.Add(x, y)
	case "-":
		v.Sub(x, y)
	case "*":
		v.Mul(x, y)
	case "/":
		v.Quo(x, y)
	}
	return text, v
}

// near reports whether an answer is the exact value rounded to 12 digits: off by at most half of the last digit.
func near(answer string, exact *big.Rat) bool {
	got, ok := new(big.Rat).SetString(answer)
	if !ok {
		return false
	}
	if exact.Sign() == 0 {
		return answer == "0"
	}
	difference := new(big.Rat).Sub(got, exact)
	bound := new(big.Rat).Abs(exact)
	bound.Mul(bound, big.NewRat(5, 1e12)) // half a unit of the 12th digit is at most 5e-12 of the value
	return difference.Abs(difference).Cmp(bound) <= 0
}

func TestArithmeticIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text, want := tree(t, 5)
		got, err := Evaluate(text)
		if want == nil {
			if err == nil || !strings.Contains(err.Error(), "division by zero") {
				t.Fatalf("%s = %q, %v; want division by zero", text, got, err)
			}
			return
		}
		if err != nil || !near(got, want) {
			t.Fatalf("%s = %q, %v; want %s", text, got, err, want.FloatString(20))
		}
		if again, err := Evaluate("(" + text + ") - (" + text + ")"); err != nil || again != "0" {
			t.Fatalf("%s less itself = %q, %v", text, again, err)
		}
		if again, err := Evaluate(got); err != nil || again != got {
			t.Fatalf("the answer %s reads as %q, %v", got, again, err)
		}
	})
}

// TestPowersAgree compares with a decimal library that works powers and roots out in another way.
func TestPowersAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		base := rapid.StringMatching(`[1-9][0-9]{0,5}(\.[0-9]{1,12})?(e-?[1-9])?`).Draw(t, "base")
		exponent := rapid.StringMatching(`-?[0-9](\.[0-9]{1,8})?`).Draw(t, "exponent")
		c := apd.BaseContext.WithPrecision(60)
		x, _, err := apd.NewFromString(base)
		if err != nil {
			t.Fatal(err)
		}
		y, _, err := apd.NewFromString(exponent)
		if err != nil {
			t.Fatal(err)
		}
		var want, root apd.Decimal
		if _, err := c.Pow(&want, x, y); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Sqrt(&root, x); err != nil {
			t.Fatal(err)
		}
		for _, check := range []struct {
			text string
			want *apd.Decimal
		}{{base + "^" + exponent, &want}, {"sqrt(" + base + ")", &root}} {
			exact, _ := new(big.Rat).SetString(check.want.Text('e'))
			if got, err := Evaluate(check.text); err != nil || !near(got, exact) {
				t.Fatalf("%s = %q, %v; want %s", check.text, got, err, check.want)
			}
		}
	})
}

func TestTimeIsBounded(t *testing.T) {
	for name, x := range costly() {
		start := time.Now()
		_, _ = Evaluate(x)
		// Measured at well below a tenth of a second; the rest is for a busy machine.
		if took := time.Since(start); took > 3*time.Second {
			t.Errorf("%s took %v", name, took)
		}
	}
}

func FuzzEvaluate(f *testing.F) {
	for _, x := range []string{
		"1+2*3", "-3^2", "2^-1", "4^3^2", ".5e-3", "5.", "max(1,000)", "round(2.345,-2)", "1/3*3-1", "sqrt(2)^2", "9^387420489", "1_000", "2²",
		"8^(1/3)", "(-8)^(1/3)", "0^-1", "1e1000*10", "1e-1000/10", "min(abs(-1),2,sqrt(4))", "((((", "1.0000000001^1e9", "\xff", "1e99999999999999999",
	} {
		f.Add(x)
	}
	f.Fuzz(func(t *testing.T, x string) {
		start := time.Now()
		value, err := Evaluate(x)
		if took := time.Since(start); took > 5*time.Second {
			t.Fatalf("%q took %v", x, took)
		}
		if err != nil {
			var e *Error
			if !errors.As(err, &e) || e.Position < 1 || e.Reason == "" || value != "" {
				t.Fatalf("%q: %q, %#v", x, value, err)
			}
			return
		}
		if strings.Trim(value, "-0123456789.e") != "" || value == "-0" || len(value) > 30 {
			t.Fatalf("%q = %q", x, value)
		}
		if again, err := Evaluate(value); err != nil || again != value {
			t.Fatalf("%q = %q, which reads as %q, %v", x, value, again, err)
		}
	})
}
