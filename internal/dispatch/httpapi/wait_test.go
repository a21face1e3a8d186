package httpapi

import (
	"testing"
	"time"
)

func TestPreferredWait(t *testing.T) {
	for _, c := range []struct {
		headers []string
		wait    time.Duration
		asked   bool
	}{
		{nil, 60 * time.Second, false},
		{[]string{"wait=5"}, 5 * time.Second, true},
		{[]string{"respond-async", "handling=lenient, wait = 7"}, 7 * time.Second, true},
		{[]string{"wait=600"}, 600 * time.Second, true},
		{[]string{"wait=601"}, 600 * time.Second, true},
		{[]string{"wait=99999999999999999999"}, 600 * time.Second, true},
		{[]string{"wait=-1"}, 60 * time.Second, false},
		{[]string{"wait=1.5"}, 60 * time.Second, false},
		{[]string{"wait"}, 60 * time.Second, false},
		{[]string{"waits=1"}, 60 * time.Second, false},
	} {
		if wait, asked := preferredWait(c.headers); wait != c.wait || asked != c.asked {
			t.Errorf("preferredWait(%q) = %s, %t; want %s, %t", c.headers, wait, asked, c.wait, c.asked)
		}
	}
}

func TestDisposition(t *testing.T) {
	for name, want := range map[string]string{
		"a.txt":       `attachment; filename="a.txt"`,
		"a b;c.txt":   `attachment; filename="a b_c.txt"; filename*=UTF-8''a%20b%3Bc.txt`,
		`q"uote.html`: `attachment; filename="q_uote.html"; filename*=UTF-8''q%22uote.html`,
		"100%.csv":    `attachment; filename="100_.csv"; filename*=UTF-8''100%25.csv`,
		"é中.md":       `attachment; filename="__.md"; filename*=UTF-8''%C3%A9%E4%B8%AD.md`,
	} {
		if got := disposition(name); got != want {
			t.Errorf("disposition(%q) = %s, want %s", name, got, want)
		}
	}
}
