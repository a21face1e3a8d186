package calculator

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestValues(t *testing.T) {
	tests := []struct{ expression, want string }{
		// numbers
		{"0", "0"}, {"7", "7"}, {"0.5", "0.5"}, {".5", "0.5"}, {"5.", "5"}, {"1e3", "1000"}, {"1E+3", "1000"}, {"1.5e-3", "0.0015"},
		{"5.e2", "500"}, {".5e1", "5"}, {"1e007", "10000000"}, {"0e999999999999999999999", "0"}, {"0.000", "0"}, {"1.000", "1"},
		{"100e-2", "1"}, {strings.Repeat("9", 1000) + "-" + strings.Repeat("9", 1000), "0"},
		// precedence and association
		{"1+2*3", "7"}, {"(1+2)*3", "9"}, {"2-3-4", "-5"}, {"100/10/2", "5"}, {"2*3/4", "1.5"},
		{"4^3^2", "262144"}, {"(4^3)^2", "4096"}, {"-3^2", "-9"}, {"(-3)^2", "9"}, {"2^-1", "0.5"}, {"2^-3^2", "0.001953125"},
		{"-2^-2", "-0.25"}, {"2*-3", "-6"}, {"2--3", "5"}, {"--2", "2"}, {"---2", "-2"}, {"+2", "2"}, {"1 - -+-1", "0"}, {"-2*3", "-6"},
		// exact inside
		{"0.1+0.2", "0.3"}, {".025*4", "0.1"}, {"1/3*3", "1"}, {"1/3*3-1", "0"}, {"1/3+1/3+1/3-1", "0"}, {"round(1/3*3*2.5)", "3"},
		{"1e999+1e-1000-1e999", "1e-1000"}, {"1.05^360", "42476396.4087"}, {"2^200-2^200+1", "1"}, {"(1+1e-40)^2-1-2e-40", "1e-80"},
		// 12 digits out, halves away from zero, no trailing zeros
		{"1/3", "0.333333333333"}, {"2/3", "0.666666666667"}, {"-2/3", "-0.666666666667"}, {"1.000000000005", "1.00000000001"},
		{"-1.000000000005", "-1.00000000001"}, {"1.0000000000049999999", "1"}, {"123456789012.5", "123456789013"}, {"123456789014.5", "123456789015"},
		{"1234567890125", "1234567890130"}, {"999999999999.5", "1000000000000"}, {"1.50", "1.5"}, {"1500", "1500"},
		// plain from 1e-6 to below 1e21
		{"1e-6", "0.000001"}, {"1.5e-6", "0.0000015"}, {"1e-7", "1e-7"}, {"9.5e-7", "9.5e-7"}, {"-2.5e-7", "-2.5e-7"}, {"0.9999999999999e-6", "0.000001"},
		{"1e20", "100000000000000000000"}, {"123456789012345678901", "123456789012000000000"}, {"1e21", "1e21"}, {"-1e21", "-1e21"},
		{"999999999999999999999", "1e21"}, {"999999999999e9", "999999999999000000000"}, {"1.5e30", "1.5e30"}, {"1e1000", "1e1000"}, {"1e-1000", "1e-1000"},
		// never a negative zero
		{"-0", "0"}, {"0*-1", "0"}, {"round(-0.4)", "0"}, {"0/-5", "0"}, {"-0.0e5", "0"},
		// functions
		{"min(2,3,1)", "1"}, {"max(2,3)", "3"}, {"min(4)", "4"}, {"max(-1,-2)", "-1"}, {"max(1,0)", "1"}, {"max(1,234)", "234"},
		{"abs(-2.5)", "2.5"}, {"abs(3)", "3"}, {"sqrt(2)", "1.41421356237"}, {"sqrt(0)", "0"}, {"sqrt(16)", "4"}, {"sqrt(4/9)*3", "2"}, {"sqrt(1e-1000)", "1e-500"},
		{"sqrt(2e999)", "4.472135955e499"}, {"sqrt(2e-999)", "4.472135955e-500"}, {"max (1, min ( 2 , 3 ) )", "2"}, {"-abs(-2)^2", "-4"},
		{"round(2.5)", "3"}, {"round(-2.5)", "-3"}, {"round(3.5)", "4"}, {"round(2.4999999999999999999999)", "2"}, {"round(2.345,2)", "2.35"}, {"round(-2.345,2)", "-2.35"},
		{"round(1234.5,-2)", "1200"}, {"round(1250,-2)", "1300"}, {"round(49,-2)", "0"}, {"round(50,-2)", "100"}, {"round(1.5,0)", "2"}, {"round(1.5,1+1)", "1.5"},
		{"round(1/3,1e900)", "0.333333333333"}, {"round(1e1000,-1e900)", "0"}, {"round(7e999,-1000)", "1e1000"}, {"round(2.675,2)", "2.68"}, {"round(1.005*100)/100", "1.01"},
		// powers
		{"0^0", "1"}, {"0^2.5", "0"}, {"1^1e900", "1"}, {"(-1)^1e17", "1"}, {"(-1)^(1e17+1)", "-1"}, {"(-1)^-3", "-1"}, {"(-2)^3", "-8"}, {"10^-3", "0.001"},
		{"4^0.5", "2"}, {"8^(1/3)", "2"}, {"(8/27)^(-2/3)", "2.25"}, {"0.001^(1/3)", "0.1"}, {"2^0.5", "1.41421356237"}, {"2^0.1^2", "1.00695555006"},
		{"2^(1/3)", "1.25992104989"}, {"1.1^2.5", "1.26905870629"}, {"10^0.30103", "2.00000001997"}, {"10^999.5", "3.16227766017e999"}, {"10^-999.5", "3.16227766017e-1000"},
		{"1.0000000001^1e9", "1.10517091807"}, {"1.0000000001^-1e9", "0.90483741804"}, {"(1+1e-17)^5e17", "148.413159103"}, {"0.5^0.5^0.5", "0.612547326536"},
		{"10^1000", "1e1000"}, {"10^-1000", "1e-1000"}, {"1e-1000^-1", "1e1000"}, {"9^1000", "1.74787125172e954"}, {"1.5^5000", "2.85953409027e880"},
		// space between tokens
		{" 1 +\t2\n", "3"}, {"sqrt\n(4)", "2"}, {"1\u00a0+\u20091", "2"},
	}
	for _, tt := range tests {
		got, err := Evaluate(tt.expression)
		if err != nil || got != tt.want {
			t.Errorf("%s = %q, %v; want %q", clip(tt.expression), got, err, tt.want)
		}
	}
}

func TestReasons(t *testing.T) {
	tests := []struct {
		expression string
		position   int
		reason     string // part of it
	}{
		{"", 1, "empty"}, {" \t", 1, "empty"}, {"2+", 3, "ends where"}, {"(", 2, "ends where"}, {"(1", 3, "opened at position 1 is not closed"}, {"max(1", 6, "opened at position 4"},
		{"1)", 2, "no opening one"}, {"()", 2, `")" stands where`}, {"2*/3", 3, `"/" stands where`}, {"2**3", 2, "write ^"}, {"^2", 1, `"^" stands where`},
		// names
		{"x+1", 1, `"x" is not known`}, {"1+pi", 3, `"pi" is not known`}, {"2x", 2, `"x" is not known`}, {"foo(1)", 1, `"foo" is not known`}, {"0x10", 2, `"x10" is not known`},
		{"Max(1,2)", 1, "lower case: max"}, {"__import__('os')", 1, `"__import__" is not known`}, {"π", 1, `"π" is not known`}, {"ans", 1, "no variables"}, {"max", 1, "in parentheses"},
		{"2 sqrt(4)", 3, "operator should stand before sqrt"}, {"NaN", 1, "not known"}, {"Infinity", 1, "not known"},
		// assignment, percent, group separators
		{"x=1", 1, "not known"}, {"1=1", 2, "no assignment"}, {"5%2", 2, "no percent"}, {"1,000", 2, "not grouped"}, {"max(1,000)", 7, "does not begin with 0"}, {"(1,2)", 3, "not grouped"},
		{"1_000", 2, "not a group separator"}, {"1'000", 2, "not a group separator"}, {"1 000", 3, "begin with 0"}, {"1 234", 3, "left over"}, {"1.234.567", 6, "one point too many"},
		// numbers
		{"007", 1, "does not begin with 0"}, {"00", 1, "does not begin with 0"}, {"1+00.5", 3, "does not begin with 0"}, {"1..2", 3, "one point too many"}, {".", 1, "no digit beside it"},
		{"1e", 2, "no digits"}, {"1e+", 2, "no digits"}, {"2*1e-x", 4, "no digits"}, {"1e5.5", 4, "one point too many"}, {"١", 1, "not a digit from 0 to 9"},
		// left over
		{"2 3", 3, "left over"}, {"2(3)", 2, "left over"}, {"(2)(3)", 4, "left over"}, {"1;2", 2, "write ,"}, {"1!", 2, "not understood"}, {"$5", 1, "not understood"}, {"1+\x00", 3, "U+0000"},
		{"1\xff", 2, "U+FFFD"},
		// characters that look like others, counted as characters
		{"3−2", 2, "(U+2212) is not understood here; write - instead"}, {"3–2", 2, "write -"}, {"2×3", 2, "write *"}, {"2·3", 2, "write *"}, {"6÷2", 2, "write /"}, {"１", 1, "not a digit"}, {"2²", 2, "write ^2"}, {"[1]", 1, "write ("}, {"√4", 1, "write sqrt"},
		// arity
		{"min()", 1, "one or more arguments and was given 0"}, {"abs(1,2)", 1, "exactly one argument and was given 2"}, {"1+sqrt()", 3, "given 0"}, {"round(1,2,3)", 1, "given 3"}, {"round()", 1, "given 0"}, {"max(1,)", 7, "stands where"},
		// arithmetic
		{"1/0", 2, "division by zero"}, {"1/(2-2)", 2, "division by zero"}, {"0/0", 2, "division by zero"}, {"0^-1", 2, "division by zero"}, {"sqrt(-1)", 1, "negative"}, {"2+sqrt(-1e-900)", 3, "negative"},
		{"(-8)^(1/3)", 5, "not a real number"}, {"(-1)^0.5", 5, "not a real number"}, {"round(1,0.5)", 1, "not a whole number"},
		{"9^387420489", 2, "overflow"}, {"9^9^9^9", 4, "overflow"}, {"10^1001", 3, "overflow"}, {"10^1000.0001", 3, "overflow"}, {"1e1000*10", 7, "overflow"}, {"1e1000+1e-1000", 7, "overflow"}, {"-1e1000-1", 8, "overflow"},
		{"1e1001", 1, "overflow"}, {"2e1000", 1, "overflow"}, {"1e99999999999999999999", 1, "overflow"}, {strings.Repeat("9", 1001), 1, "overflow"}, {"0.1^-5000", 4, "overflow"}, {"round(9e999,-1000)+1", 19, "overflow"},
		{"1e-1001", 1, "underflow"}, {"1e-99999999999999999999", 1, "underflow"}, {"10^-1001", 3, "underflow"}, {"1e-1000/2", 8, "underflow"}, {"0.5^1e900", 4, "underflow"}, {"1/3e999/9e9", 8, "underflow"},
		{"(1+1e-30)^1e20", 10, "beyond 1e18"},
	}
	for _, tt := range tests {
		got, err := Evaluate(tt.expression)
		var e *Error
		if !errors.As(err, &e) || got != "" {
			t.Errorf("%s = %q, %v; want a reason", clip(tt.expression), got, err)
			continue
		}
		if e.Position != tt.position || !strings.Contains(e.Reason, tt.reason) {
			t.Errorf("%s: position %d: %s; want position %d: %s", clip(tt.expression), e.Position, e.Reason, tt.position, tt.reason)
		}
	}
}

func TestDepth(t *testing.T) {
	nest := func(open, inside, closing string) func(int) string {
		return func(n int) string { return strings.Repeat(open, n) + inside + strings.Repeat(closing, n) }
	}
	tests := []struct {
		name  string
		make  func(levels int) string
		width int // characters of one level, before the inside
	}{
		{"parentheses", nest("(", "1", ")"), 1},
		{"calls", nest("abs(", "1", ")"), 4},
		{"minus", nest("-", "1", ""), 1},
		{"plus", nest("+", "1", ""), 1},
		{"powers", func(n int) string { return "1" + strings.Repeat("^1", n) }, 2},
		{"all kinds", func(n int) string {
			// a sign, a parenthesis, a call and a power: four levels
			return strings.Repeat("-(1^abs(", n/4) + strings.Repeat("(", n%4) + "1" + strings.Repeat(")", n%4) + strings.Repeat("))", n/4)
		}, 0},
	}
	for _, tt := range tests {
		if _, err := Evaluate(tt.make(MaxDepth)); err != nil {
			t.Errorf("%s, %d levels: %v", tt.name, MaxDepth, err)
		}
		_, err := Evaluate(tt.make(MaxDepth + 1))
		var e *Error
		if !errors.As(err, &e) || !strings.Contains(e.Reason, "64 levels") {
			t.Errorf("%s, %d levels: %v", tt.name, MaxDepth+1, err)
			continue
		}
		if want := tt.width*MaxDepth + 1; tt.width == 1 && e.Position != want {
			t.Errorf("%s: position %d, want %d", tt.name, e.Position, want)
		}
	}
	if got, err := Evaluate(strings.Repeat("-(1)^(1)+", 400) + "0"); err != nil || got != "-400" {
		t.Errorf("levels that were left still count: %q, %v", got, err)
	}
}

func TestLength(t *testing.T) {
	if _, err := Evaluate(strings.Repeat(" ", MaxLength-1) + "1"); err != nil {
		t.Error(err)
	}
	for _, x := range []string{strings.Repeat("1", MaxLength+1), strings.Repeat("(", 50_000_000), strings.Repeat("é", MaxLength+1)} {
		_, err := Evaluate(x)
		var e *Error
		if !errors.As(err, &e) || e.Position != MaxLength+1 || !strings.Contains(e.Reason, "longer than 4000") {
			t.Errorf("%d bytes: %v", len(x), err)
		}
	}
	if _, err := Evaluate(strings.Repeat("é", MaxLength)); err == nil || strings.Contains(err.Error(), "longer") || utf8.RuneCountInString(err.Error()) > 300 {
		t.Errorf("length is counted in characters, and reasons stay short: %v", err)
	}
}

func TestEvaluateAll(t *testing.T) {
	got, err := json.Marshal(EvaluateAll([]string{"1+1", "1/0", "0"}))
	if err != nil {
		t.Fatal(err)
	}
	want := `[{"expression":"1+1","value":"2"},{"expression":"1/0","error":"position 2: division by zero."},{"expression":"0","value":"0"}]`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := EvaluateAll(nil); got == nil || len(got) != 0 {
		t.Errorf("no expressions: %v, want an empty list", got)
	}
}

// costly gives expressions of the full length whose every operation is as expensive as the grammar allows.
func costly() map[string]string {
	fill := func(s string) string { return strings.Repeat(s, (MaxLength-1)/len(s)) + "1" }
	var primes strings.Builder
	for n := 999_983; primes.Len() < MaxLength-20; n -= 2 {
		fmt.Fprintf(&primes, "1/%d+", n)
	}
	return map[string]string{
		"fractions that grow":  primes.String() + "1",
		"long sums":            fill("1/3e-999+1+"),
		"long quotients":       fill("1/(1e999+1/3)/1e-999+"),
		"powers":               fill("1.3^.7+"),
		"powers of powers":     fill("3^.7^.7^.7+"),
		"roots":                fill("7e999^.03+"),
		"square roots":         fill("sqrt(7/3e-999)+"),
		"long exact powers":    fill("1.1^2466/1.1^2465+"),
		"comparing":            "max(" + strings.Repeat("1/3e-998,", 440) + "1)",
		"roundings":            fill("round(1/3,1000)+"),
		"a long literal":       "0." + strings.Repeat("7", MaxLength-2),
		"many long products":   fill("(7/3e-499)^2*1e-999*"),
		"a million millionths": "1.0000000001^1e9",
	}
}

func BenchmarkEvaluate(b *testing.B) {
	for name, x := range costly() {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				_, _ = Evaluate(x)
			}
		})
	}
}
