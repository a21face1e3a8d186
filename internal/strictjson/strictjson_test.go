package strictjson

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
)

func decode(s string) (any, error) { return Decode([]byte(s), DefaultLimits()) }

func TestDecode(t *testing.T) {
	type object = map[string]any
	type array = []any
	tests := []struct {
		json string
		want any
	}{
		{`null`, nil}, {`true`, true}, {` false `, false}, {"\t\r\n 1\n", json.Number("1")}, {`""`, ""},
		{`{}`, object{}}, {`[]`, array{}}, {`[ ]`, array{}}, {`{ "a" : [ 1 , { } ] , "b" : null }`, object{"a": array{json.Number("1"), object{}}, "b": nil}},
		// numbers are kept as they were written
		{`[0,-0,1.50,1e2,1E+2,-1.5e-10,123456789012345678901234567890.1]`, array{json.Number("0"), json.Number("-0"), json.Number("1.50"),
			json.Number("1e2"), json.Number("1E+2"), json.Number("-1.5e-10"), json.Number("123456789012345678901234567890.1")}},
		// strings
		{`"\"\\\/\b\f\n\r\t"`, "\"\\/\b\f\n\r\t"}, {`"a\u00e9b\u20ACc"`, "aéb€c"}, {`"é€😀"`, "é€😀"}, {`"\ud83d\ude00"`, "😀"}, {`"\uD83D\uDE00!"`, "😀!"},
		{`"a\u0000b"`, "a\x00b"}, {`"\ufffd\uffff"`, "\ufffd\uffff"}, {"\"\u2028\u007f\ufeff\"", "\u2028\u007f\ufeff"}, {`"\\u0041"`, `\u0041`},
		// keys
		{`{"":1,"a\u0000":2,"A":3,"a":4}`, object{"": json.Number("1"), "a\x00": json.Number("2"), "A": json.Number("3"), "a": json.Number("4")}},
		{`{"a":{"a":1},"b":{"a":1}}`, object{"a": object{"a": json.Number("1")}, "b": object{"a": json.Number("1")}}},
	}
	for _, tt := range tests {
		if got, err := decode(tt.json); err != nil || !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s\n got %#v, %v\nwant %#v", tt.json, got, err, tt.want)
		}
	}
}

func TestRefusals(t *testing.T) {
	tests := []struct {
		json    string
		kind    Kind
		offset  int
		pointer string
		reason  string // part of it
	}{
		{``, Syntax, 0, "", "nothing was sent"}, {" \n", Syntax, 2, "", "nothing was sent"}, {`{`, Syntax, 1, "", "the end of the input stands where a key"},
		{`{"a"`, Syntax, 4, "", `":" after the key "a"`}, {`{"a":`, Syntax, 5, "/a", "cut off"}, {`{"a":1`, Syntax, 6, "", `"," or "}"`}, {`[1`, Syntax, 2, "", `"," or "]"`}, {`[1 2]`, Syntax, 3, "", `"," or "]"`},
		{`[1,]`, Syntax, 3, "", "Leave it out"}, {`{"a":1,}`, Syntax, 7, "", "Leave it out"}, {`[,1]`, Syntax, 1, "/0", `"," stands where a value`}, {`{a:1}`, Syntax, 1, "", "in double quotes"}, {`{'a':1}`, Syntax, 1, "", "in double quotes"},
		{`'a'`, Syntax, 0, "", "double quotes"}, {`True`, Syntax, 0, "", `"True" is no JSON value`}, {`nul`, Syntax, 0, "", `"nul"`}, {`NaN`, Syntax, 0, "", `"NaN"`}, {`[nullx]`, Syntax, 1, "/0", `"nullx"`}, {`[-Infinity]`, Syntax, 2, "/0", "digits of a number"},
		{`undefined`, Syntax, 0, "", "true, false and null"}, {`// x`, Syntax, 0, "", "stands where a value"}, {"\ufeff1", Syntax, 0, "", "byte order mark"}, {"\u00a01", Syntax, 0, "", "U+00A0"},
		// numbers
		{`01`, Syntax, 0, "", "begin with 0"}, {`-`, Syntax, 1, "", "digits of a number"}, {`-01`, Syntax, 1, "", "begin with 0"}, {`+1`, Syntax, 0, "", `"+" stands`}, {`.5`, Syntax, 0, "", `"." stands`}, {`5.`, Syntax, 2, "", "after the point"},
		{`1e`, Syntax, 2, "", "exponent"}, {`1e+`, Syntax, 3, "", "exponent"}, {`0x1`, TrailingData, 1, "", `"x" comes after`}, {`1_000`, TrailingData, 1, "", `"_" comes after`},
		{`[1e1001]`, NumberTooLarge, 1, "/0", "beyond 1000"}, {`1e-1001`, NumberTooLarge, 0, "", "beyond 1000"}, {`1e99999999999999999999`, NumberTooLarge, 0, "", "beyond 1000"}, {strings.Repeat("9", 1001), NumberTooLarge, 0, "", "longer than 1000"},
		// strings
		{`"a`, Syntax, 0, "", "not closed"}, {`["a","b]`, Syntax, 5, "/1", "not closed"}, {`"a\`, Syntax, 2, "", "middle of an escape"}, {`"\x41"`, Syntax, 1, "", "write two"}, {`"\u12g4"`, Syntax, 1, "", "four hexadecimal"}, {`"\u12`, Syntax, 1, "", "four hexadecimal"},
		{"\"a\nb\"", Syntax, 2, "", `as an escape: \n`}, {"\"a\x00b\"", Syntax, 2, "", `as an escape: \u0000`}, {`{"content":"a` + "\t" + `"}`, Syntax, 13, "/content", `as an escape: \t`},
		// surrogates, UTF-8
		{`"\ud800"`, LoneSurrogate, 1, "", `\ud800`}, {`"\udc00"`, LoneSurrogate, 1, "", `\udc00`}, {`"\ud800x"`, LoneSurrogate, 1, "", `\ud800`}, {`"\ud800\ud800"`, LoneSurrogate, 1, "", `\ud800`}, {`"\ude00\ud83d"`, LoneSurrogate, 1, "", `\ude00`},
		{`{"k":["x\uDBFF\u0041"]}`, LoneSurrogate, 8, "/k/0", `\udbff`}, {`{"\ud800":1}`, LoneSurrogate, 2, "", `\ud800`},
		{"\"\xed\xa0\x80\"", InvalidUTF8, 1, "", "0xed"}, {"\"a\xffb\"", InvalidUTF8, 2, "", "0xff"}, {"\"\xc0\x80\"", InvalidUTF8, 1, "", "0xc0"}, {"\"\ufffd\xe2\x82\"", InvalidUTF8, 4, "", "0xe2"}, {"{}\xff", InvalidUTF8, 2, "", "0xff"},
		// keys given twice
		{`{"a":1,"a":2}`, DuplicateKey, 7, "", `"a" is given twice`}, {`{"a":1,"\u0061":1}`, DuplicateKey, 7, "", `"a" is given twice`}, {`{"x/y":[0,{"":1,"":2}]}`, DuplicateKey, 16, "/x~1y/1", `"" is given twice`},
		{`{"` + strings.Repeat("k", 1000) + `":1,"` + strings.Repeat("k", 1000) + `":1}`, DuplicateKey, 1006, "", `kkk..."`},
		// trailing data
		{`{} {}`, TrailingData, 3, "", `"{" comes after`}, {`1,`, TrailingData, 1, "", `"," comes after`}, {"null\x00", TrailingData, 4, "", "U+0000"},
	}
	for _, tt := range tests {
		got, err := decode(tt.json)
		var e *Error
		if !errors.As(err, &e) || got != nil {
			t.Errorf("%s = %v, %v; want a refusal", clip(tt.json), got, err)
			continue
		}
		if e.Kind != tt.kind || e.Offset != tt.offset || e.Pointer != tt.pointer || !strings.Contains(e.Reason, tt.reason) {
			t.Errorf("%s:\n got %s at %d in %q: %s\nwant %s at %d in %q: %s", clip(tt.json), e.Kind, e.Offset, e.Pointer, e.Reason, tt.kind, tt.offset, tt.pointer, tt.reason)
		}
	}
}

func TestErrorSaysWhere(t *testing.T) {
	_, err := decode("{\n \"é\": {\"x\": 1,\n  \"é\": tru}}")
	want := `line 3, column 8 (byte 26), in /é/é: "tru" is no JSON value. The words of JSON are true, false and null; strings are written in double quotes.`
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

func TestDepth(t *testing.T) {
	nest := func(n int) string { return strings.Repeat(`[`, n) + strings.Repeat(`]`, n) }
	if _, err := decode(nest(64)); err != nil {
		t.Error(err)
	}
	mixed := strings.Repeat(`{"a":[`, 32) + "1" + strings.Repeat(`]}`, 32)
	if _, err := decode(mixed); err != nil {
		t.Error(err)
	}
	for _, s := range []string{nest(65), strings.Repeat(`[`, 10_000_000), strings.Repeat(`{"a":`, 1_000_000), "[" + mixed + "]"} {
		_, err := decode(s)
		var e *Error
		if !errors.As(err, &e) || e.Kind != TooDeep {
			t.Errorf("%s: %v", clip(s), err)
		}
	}
	// Siblings do not add up.
	if _, err := decode("[" + strings.Repeat(nest(63)+",", 100) + "1]"); err != nil {
		t.Error(err)
	}
	if _, err := Decode([]byte("[]"), Limits{Depth: 0}); err == nil {
		t.Error("a depth of 0 allows scalars alone")
	}
}

func TestTimeIsLinear(t *testing.T) {
	const n = 1 << 20
	for name, s := range map[string]string{
		"escapes":     `"` + strings.Repeat(`\n`, n) + `"`,
		"a long text": `"` + strings.Repeat(`é`, n) + `"`,
		"numbers":     `[` + strings.Repeat("0,", n) + `0]`,
		"objects":     `[` + strings.Repeat("{},", n) + `0]`,
		"keys":        `{` + manyKeys(n/8) + `}`,
		"digits":      strings.Repeat("1", n),
		"lines":       strings.Repeat("\n", n) + "x",
		"a long path": `{"` + strings.Repeat("k", n) + `":x}`,
	} {
		start := time.Now()
		_, _ = Canonical([]byte(s))
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("%s: %v", name, took)
		}
	}
}

func manyKeys(n int) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `"k%d":0`, i)
	}
	return b.String()
}

func TestCanonical(t *testing.T) {
	tests := []struct{ json, want string }{
		{` { "b" : 1 , "a" : [ true , null ] } `, `{"a":[true,null],"b":1}`},
		{`{"\u0061":"\u00e9\/\u0041\ud83d\ude00"}`, `{"a":"é/A😀"}`},
		{`"\u0000\u001f\b\f\n\r\t\"\\\u007f<>&` + "\u2028" + `"`, `"\u0000\u001f\b\f\n\r\t\"\\` + "\u007f<>&\u2028" + `"`},
		{`{"a":{"y":1,"x":2},"B":3,"":4}`, `{"":4,"B":3,"a":{"x":2,"y":1}}`},
		{`[1,1.0,10e-1,0.1e1,100e-2,1E0]`, `[1,1,1,1,1,1]`},
		{`[0,-0,0.0,0e5,-0.00e-3]`, `[0,0,0,0,0]`},
		{`[100,1e2,-1.5,-15e-1,0.001,1e-3]`, `[100,100,-15e-1,-15e-1,1e-3,1e-3]`},
		{`[1e20,1e21,1000000000000000000000,123456789012345678901234567890]`, `[100000000000000000000,1e21,1e21,12345678901234567890123456789e1]`},
		{`[9007199254740993,9007199254740992]`, `[9007199254740993,9007199254740992]`},
		{`[10E1000,1000e999,0.1e-1000,123e-1000,0.05e-999]`, `[10e1000,100e1000,0.1e-1000,123e-1000,0.5e-1000]`},
		{`"x"`, `"x"`}, {`[]`, `[]`}, {`{}`, `{}`},
	}
	for _, tt := range tests {
		got, err := Canonical([]byte(tt.json))
		if err != nil || string(got) != tt.want {
			t.Errorf("%s\n got %s, %v\nwant %s", tt.json, got, err, tt.want)
		}
	}
	if _, err := Canonical([]byte(`{"a":1,"a":1}`)); err == nil {
		t.Error("a key given twice has no canonical form")
	}
	if _, err := Encode([]any{1.5}); err == nil || !strings.Contains(err.Error(), "float64") {
		t.Errorf("a value that decoding does not give: %v", err)
	}
}

func TestPointer(t *testing.T) {
	document, err := decode(`{"foo":["bar","baz",{"x":null}],"":0,"a/b":1,"c%d":2,"i\\j":5," ":7,"m~n":8,"~1":9,"0":{"-":10},"s":"text"}`)
	if err != nil {
		t.Fatal(err)
	}
	found := []struct {
		pointer string
		want    any
	}{
		{"", document}, {"/foo/0", "bar"}, {"/foo/1", "baz"}, {"/foo/2/x", nil}, {"/", json.Number("0")}, {"/a~1b", json.Number("1")}, {"/c%d", json.Number("2")},
		{`/i\j`, json.Number("5")}, {"/ ", json.Number("7")}, {"/m~0n", json.Number("8")}, {"/~01", json.Number("9")}, {"/0/-", json.Number("10")}, {"/s", "text"},
	}
	for _, tt := range found {
		if got, err := Pointer(document, tt.pointer); err != nil || !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%q = %v, %v; want %v", tt.pointer, got, err, tt.want)
		}
	}
	lost := []struct {
		pointer string
		kind    PointerKind
		at      string
		reason  string
	}{
		{"foo", BadPointer, "", `begins with "/"`}, {"#/foo", BadPointer, "", `begins with "/"`}, {"/a~b", BadPointer, "", `"~0"`}, {"/nothing/~", BadPointer, "", `"~0"`}, {"/~2", BadPointer, "", `"~1"`},
		{"/foo/-", BadPointer, "/foo", "place after its end"}, {"/foo/01", BadPointer, "/foo", "leading zeros"}, {"/foo/+1", BadPointer, "/foo", "no index"}, {"/foo/", BadPointer, "/foo", "no index"}, {"/foo/-1", BadPointer, "/foo", "no index"}, {"/foo/1e0", BadPointer, "/foo", "no index"},
		{"/foo/3", NoSuchMember, "/foo", "an array of 3"}, {"/foo/99999999999999999999", NoSuchMember, "/foo", "an array of 3"}, {"/bar", NoSuchMember, "", `no key "bar"; its keys are "", " ", "0"`}, {"/foo/2/y", NoSuchMember, "/foo/2", `its keys are "x"`}, {"//x", NotAContainer, "/", "a number, which has no members"},
		{"/s/0", NotAContainer, "/s", "a string"}, {"/foo/2/x/y", NotAContainer, "/foo/2/x", "null"}, {"/s/", NotAContainer, "/s", "a string"},
	}
	for _, tt := range lost {
		got, err := Pointer(document, tt.pointer)
		var e *PointerError
		if !errors.As(err, &e) || got != nil {
			t.Errorf("%q = %v, %v; want an error", tt.pointer, got, err)
			continue
		}
		if e.Kind != tt.kind || e.At != tt.at || !strings.Contains(e.Reason, tt.reason) || e.Pointer != tt.pointer {
			t.Errorf("%q: %s at %q: %s\nwant %s at %q: %s", tt.pointer, e.Kind, e.At, e.Reason, tt.kind, tt.at, tt.reason)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, s := range []string{
		`{"a":[1,2.5e-3,"x\n\u00e9",null,true,{}]}`, `{"a":1,"a":2}`, `"\ud83d\ude00"`, `"\ud800"`, "\"\xff\"", `[[[]]] x`, `-0`, `1e999`, `{"":[]}`, "\"\x00\"",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		v, err := Decode(b, DefaultLimits())
		if err != nil {
			var e *Error
			if !errors.As(err, &e) || e.Offset < 0 || e.Offset > len(b) || e.Line < 1 || e.Column < 1 || e.Reason == "" {
				t.Fatalf("%q: %#v", b, err)
			}
			if e.Kind == Syntax && json.Valid(b) {
				t.Fatalf("%q is JSON but was refused: %v", b, err)
			}
			return
		}
		if !json.Valid(b) {
			t.Fatalf("%q is not JSON but was read", b)
		}
		d := json.NewDecoder(strings.NewReader(string(b)))
		d.UseNumber()
		var want any
		if err := d.Decode(&want); err != nil || !reflect.DeepEqual(v, want) {
			t.Fatalf("%q = %#v; encoding/json reads %#v, %v", b, v, want, err)
		}
		canonical, err := Encode(v)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := Canonical(canonical); err != nil || string(again) != string(canonical) {
			t.Fatalf("%q has canonical form %s, and that has %s, %v", b, canonical, again, err)
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	for name, s := range map[string]string{
		"text":    `{"path":"a","content":"` + strings.Repeat(`a line of text\n`, 60_000) + `"}`,
		"objects": `[` + strings.Repeat(`{"path":"a","line":12},`, 40_000) + `0]`,
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(s)))
			for b.Loop() {
				if _, err := decode(s); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
