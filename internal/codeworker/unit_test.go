package codeworker

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"treeline/internal/call"
	"treeline/internal/ledger"
	"treeline/internal/sandbox"
	"treeline/internal/workspace"
)

func TestInstalledNamesWhatAModelAsksForFirst(t *testing.T) {
	report := func(libraries map[string]string) sandbox.Report {
		return sandbox.Report{Python: sandbox.Python{Version: "3.12.1", Libraries: libraries}}
	}
	many := map[string]string{"numpy": "2.1", "pip": "24"}
	for i := range 45 {
		many[fmt.Sprintf("aa%02d", i)] = "1"
	}
	for _, c := range []struct {
		name string
		in   map[string]string
		want string
	}{
		{"none", nil, "Python 3.12.1 with its standard library alone"},
		{"pip alone", map[string]string{"pip": "24", "setuptools": "70"}, "Python 3.12.1 with its standard library alone"},
		{"some", map[string]string{"zlib-ng": "1", "pandas": "2.2", "attrs": "25.1", "numpy": "2.1", "pip": "24"},
			"Python 3.12.1 with its standard library; numpy 2.1, pandas 2.2, attrs 25.1, zlib-ng 1"},
	} {
		if got := Installed(report(c.in)); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	if got := Installed(report(many)); !strings.HasPrefix(got, "Python 3.12.1 with its standard library; numpy 2.1, aa00 1") ||
		!strings.HasSuffix(got, "aa38 1 and 6 more") {
		t.Errorf("many: %q", got)
	}
	if len(many) != 47 {
		t.Error("the report was changed")
	}
}

func TestSlotsFitInMemory(t *testing.T) {
	const gib = 1 << 30
	for _, c := range []struct {
		configured int
		memory     int64
		want       int
	}{{4, 16 * gib, 4}, {4, 3 * gib, 3}, {4, 4*gib - 1, 3}, {4, gib / 2, 1}, {1, 16 * gib, 1}} {
		if got := slots(Config{Slots: c.configured, MemoryBytes: c.memory}, gib, zerolog.Nop()); got != c.want {
			t.Errorf("%d slots and %d bytes: %d, want %d", c.configured, c.memory, got, c.want)
		}
	}
	if got := slots(Config{Slots: 1}, gib, zerolog.Nop()); got != 1 {
		t.Errorf("as detected: %d", got)
	}
}

func TestAvailableMemoryIsTheLeastThatAnyoneLeaves(t *testing.T) {
	const meminfo = "MemTotal:       2000 kB\nMemAvailable:   1000 kB\nSwapTotal: 5 kB\n"
	for _, c := range []struct {
		name  string
		files map[string]string
		want  int64
	}{
		{"nobody says", nil, math.MaxInt64},
		{"the machine", map[string]string{"proc/meminfo": meminfo}, 1000 << 10},
		{"a group without a limit", map[string]string{"proc/meminfo": meminfo, "sys/fs/cgroup/memory.max": "max\n",
			"sys/fs/cgroup/memory.current": "5\n"}, 1000 << 10},
		{"a group", map[string]string{"proc/meminfo": meminfo, "sys/fs/cgroup/memory.max": "500000\n", "sys/fs/cgroup/memory.current": "100000\n"},
			400000},
		{"a group of the first version", map[string]string{"sys/fs/cgroup/memory/memory.limit_in_bytes": "7\n",
			"sys/fs/cgroup/memory/memory.usage_in_bytes": "9\n"}, 0},
	} {
		root := t.TempDir() + "/"
		for path, content := range c.files {
			if err := os.MkdirAll(filepath.Dir(root+path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(root+path, []byte(content), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got := availableMemory(root); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

func TestModelPaths(t *testing.T) {
	for _, c := range [][2]string{
		{`  File "/code/main.py", line 2, in <module>`, `  File "main.py", line 2, in <module>`},
		{`  File "/work/workspace/a/m.py", line 1`, `  File "workspace/a/m.py", line 1`},
		{`No such file or directory: '/work/workspace/x'`, `No such file or directory: 'workspace/x'`},
		{`/work/inputs/files/a and /work/skills/s/x.py`, `inputs/files/a and skills/s/x.py`},
		{`cannot open /work/workspace`, `cannot open workspace`},
		{`/work/workspaces /work/other /my/work/workspace/x x/work/workspace/y`, `/work/workspaces /work/other /my/work/workspace/x x/work/workspace/y`},
		{`  File "/usr/lib/python3/json/main.py", line 9`, `  File "/usr/lib/python3/json/main.py", line 9`},
		{"", ""},
	} {
		if got := modelPaths(c[0]); got != c[1] {
			t.Errorf("%q gives %q, want %q", c[0], got, c[1])
		}
	}
}

func TestAListNamesWhatFitsAndCountsTheRest(t *testing.T) {
	words := make([]string, 30)
	for i := range words {
		words[i] = fmt.Sprint(i)
	}
	f := newFacts("first")
	f.list("Some: ", []string{"a", "b"}, 0, " End.")
	f.list("None: ", nil, 0, "")
	f.list("Many: ", words, 5, "")
	f.list("Long: ", []string{strings.Repeat("x", 500), strings.Repeat("y", 500)}, 0, "")
	want := "first\nSome: a, b. End.\nMany: 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19 and 15 more.\nLong: " +
		strings.Repeat("x", 500) + " and 1 more."
	if got := f.text(); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestNamesFromAProgramCannotPoseAsText(t *testing.T) {
	if got := shown("a\nModified: b"); got != `"a\nModified: b"` {
		t.Error(got)
	}
	if got := shown(strings.Repeat("é", 300)); len([]rune(got)) != 203 || !strings.Contains(got, "...") {
		t.Error(got)
	}
}

func TestWhatIsNotKeptIsBounded(t *testing.T) {
	l := left{ignoredMore: 2}
	var outside []string
	for i := range 1500 {
		l.ignored = append(l.ignored, workspace.Ignored{Path: fmt.Sprintf("%04d", 1499-i), Reason: "x"})
		outside = append(outside, strings.Repeat("o", 1024))
	}
	l.bound(outside)
	if len(l.ignored) != 1000 || l.ignoredMore != 502 || l.ignored[0].Path != "0000" {
		t.Errorf("%d ignored, %d more, from %s", len(l.ignored), l.ignoredMore, l.ignored[0].Path)
	}
	if len(l.outside) != 128 || l.outsideMore != 1372 {
		t.Errorf("%d outside, %d more", len(l.outside), l.outsideMore)
	}
}

// messages runs a teller without a clock.
func messages(t *testing.T, work ledger.Work) (*teller, func() []progress) {
	t.Helper()
	var out []progress
	tell := newTeller(work, func(body []byte) {
		var p progress
		if err := json.Unmarshal(body, &p); err != nil {
			t.Error(err)
		}
		out = append(out, p)
	})
	return tell, func() []progress {
		tell.flush()
		got := out
		out = nil
		return got
	}
}

func TestOutputIsToldWithinARate(t *testing.T) {
	tell, flush := messages(t, ledger.Work{Key: call.Key{Conversation: "k", Turn: "t", Call: "c"}, Tool: "run_code", Seq: 3, Attempt: 2})
	tell.take(sandbox.Stdout, "a")
	tell.take(sandbox.Stdout, "b")
	tell.take(sandbox.Stderr, "c")
	tell.take(sandbox.Stdout, "d")
	got := flush()
	if len(got) != 3 || got[0].Text != "ab" || got[1].Text != "c" || got[1].Stream != sandbox.Stderr || got[2].Text != "d" {
		t.Fatalf("%+v", got)
	}
	tell.take(sandbox.Stdout, strings.Repeat("é", tellRate))
	tell.take(sandbox.Stderr, "lost")
	tell.take(sandbox.Stdout, "after what was skipped")
	got = flush()
	if len(got) != 2 || len(got[0].Text) > tellRate || len(got[0].Text)+int(got[0].Skipped) != 2*tellRate+len("after what was skipped") ||
		got[1].Text != "" || got[1].Skipped != 4 || got[1].N != 5 {
		t.Errorf("%d messages, %d bytes, skipped %d; %+v", len(got), len(got[0].Text), got[0].Skipped, got[len(got)-1])
	}
	if strings.Trim(got[0].Text, "é") != "" {
		t.Error("a character was cut in two")
	}
	for range 5 {
		flush()
	}
	tell.take(sandbox.Stdout, strings.Repeat("x", tellRate))
	if got = flush(); len(got) != 1 || len(got[0].Text) > tellRate*7/10 || len(got[0].Text) < tellRate/2 {
		t.Errorf("after half a second: %d messages", len(got))
	}
}
