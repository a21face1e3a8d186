package main

import (
	"bytes"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"treeline/internal/devenv"
	"treeline/internal/devenv/devtest"
	"treeline/internal/sandbox/local"
)

func TestMain(m *testing.M) {
	local.MaybeChild()
	devtest.Main(m)
}

// unset takes the settings of whoever runs the tests out of the environment.
func unset(t *testing.T) {
	t.Helper()
	for _, pair := range os.Environ() {
		if name, _, _ := strings.Cut(pair, "="); strings.HasPrefix(name, "TREELINE_") && name != "TREELINE_POSTGRES_BIN" {
			t.Setenv(name, "") // has it back at the end
			_ = os.Unsetenv(name)
		}
	}
}

// treeline runs a command line in this process.
func treeline(t *testing.T, args ...string) (code int, out, errOut string) {
	t.Helper()
	var o, e bytes.Buffer
	code = run(args, &o, &e)
	return code, o.String(), e.String()
}

func TestTheDemoPlaysAConversation(t *testing.T) {
	unset(t)
	code, out, errOut := treeline(t, "up", "--demo")
	if code != 0 {
		t.Fatalf("exit code %d\n%s\n%s", code, out, errOut)
	}
	_, trace, _ := strings.Cut(out, "# What the trace has kept of it\n")
	want := `    1  c1   write_file    ok deck.html
    2  c2   list_files    ok
    3  c3   read_file     ok deck.html
    4  c4   write_file    refused whole_file_replacement deck.html
    5  c5   edit_file     ok deck.html
    6  c6   search_files  ok
    0  c7   calculate     ok
    7  c8   run_code      ok figures.txt
    8  c9   delete_file   ok figures.txt
`
	if trace != want {
		t.Errorf("the trace is\n%swant\n%s", trace, want)
	}
	for _, line := range []string{
		"  | -<h2>Revenue by quarter</h2>", "  | +<h2>Revenue by quarter, in thousands</h2>", "  | 412 + 438 + 405 + 511 = 1766",
		"  | Q4   511  #########################",
	} {
		if !strings.Contains(out, line+"\n") {
			t.Errorf("the transcript lacks %q", line)
		}
	}
}

func TestTheDemoDoesWithoutCode(t *testing.T) {
	unset(t)
	folder := filepath.Join(devtest.Folder(t), "data")
	code, out, errOut := treeline(t, "up", "--demo", "--code-workers=0", "--data="+folder)
	if code != 0 || strings.Contains(out, "run_code") || !strings.Contains(out, "    7  c8   write_file    ok figures.txt\n") {
		t.Errorf("exit code %d\n%s\n%s", code, out, errOut)
	}
	if _, err := os.Stat(filepath.Join(folder, "postgres")); err != nil {
		t.Errorf("the named folder was not used: %v", err)
	}
}

func TestDoctorSaysWhatThereIs(t *testing.T) {
	unset(t)
	folder := filepath.Join(devtest.Folder(t), "data")
	code, out, errOut := treeline(t, "doctor", "--listen=127.0.0.1:0", "--data="+folder)
	if code != 0 {
		t.Errorf("exit code %d: %s\n%s", code, errOut, out)
	}
	for _, line := range []string{
		`ok    PostgreSQL       version \d+ in /`, `ok    data folder      ` + regexp.QuoteMeta(folder) + ` will be made`,
		`ok    disk             [\d.]+ GiB free below `, `ok    address          127\.0\.0\.1:0 is free`,
		`ok    sandbox local    runs code sealed by:`, `ok    Python           3\.\d+\.\d+, /`, `ok    libraries        numpy [\d.]+, pandas `,
	} {
		if !regexp.MustCompile(`(?m)^` + line).MatchString(out) {
			t.Errorf("no line %s in\n%s", line, out)
		}
	}
	if _, err := os.Stat(folder); err == nil {
		t.Error("the doctor has made the data folder")
	}
}

func TestDoctorSaysWhatUpCannotDoWithout(t *testing.T) {
	unset(t)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	parent := devtest.Folder(t)
	file := filepath.Join(parent, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	held, err := devenv.OpenFolder(filepath.Join(parent, "held"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = held.Close() }()
	t.Setenv("TREELINE_POSTGRES_BIN", parent)
	t.Setenv("TREELINE_PYTHON", filepath.Join(parent, "no-python"))
	for _, c := range []struct{ flag, line string }{
		{"--data=" + filepath.Join(parent, "new"), "NEED  PostgreSQL       the PostgreSQL programs named by TREELINE_POSTGRES_BIN: "},
		{"--listen=" + taken.Addr().String(), "NEED  address          listen tcp " + taken.Addr().String() + ": bind: address already in use"},
		{"--data=" + file, "NEED  data folder      " + file + " is not a folder"},
		{"--data=" + held.Path(), "NEED  data folder      the data folder " + held.Path() + " is in use by process "},
		{"--data=" + filepath.Join(parent, "new"), "lack  sandbox local    "},
	} {
		code, out, errOut := treeline(t, "doctor", c.flag)
		if code != 1 || !strings.Contains("\n"+out, "\n"+c.line) || !strings.Contains(errOut, "up cannot work here") {
			t.Errorf("%s: exit code %d, %q, want a line %q in\n%s", c.flag, code, errOut, c.line, out)
		}
	}
}

func TestWhatCannotBeAskedForIsSaid(t *testing.T) {
	unset(t)
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{nil, 2, "expected one of"},
		{[]string{"fly"}, 2, "unexpected argument fly"},
		{[]string{"up", "--file-workers=-1"}, 2, "fewer than 0 workers"},
		{[]string{"up", "--lease=1ms"}, 2, "TREELINE_LEASE is 1ms: it must be 1s or more"},
		{[]string{"up", "--database-url=postgres://u:hunter2@h:x/d"}, 2, "TREELINE_DATABASE_URL is not a URL"},
		{[]string{"migrate", "--database-url=postgres://u:hunter2@h:x/d"}, 2, "TREELINE_DATABASE_URL is not a URL"},
		{[]string{"call", "list_files"}, 2, "say who is calling"},
		{[]string{"call", "list_files", "{", "--token=t"}, 1, "not valid JSON"},
		{[]string{"call", "list_files", "--key=k", "--conversation=a.b"}, 1, "an id is 1 to 64 of"},
		{[]string{"call", "list_files", "--token=t", "--url=http://127.0.0.1:1"}, 1, "connection refused"},
		{[]string{"tail"}, 1, "say what to follow"},
		{[]string{"tail", "k1", "--token=t"}, 1, "a token is of one turn"},
		{[]string{"tail", "a.*", "--nats-url=nats://127.0.0.1:1"}, 1, "an id is 1 to 64 of"},
		{[]string{"tail", "--nats-url=nats://u:hunter2@h:x"}, 1, "TREELINE_NATS_URL is not a URL"},
	} {
		code, out, errOut := treeline(t, c.args...)
		if code != c.code || !strings.Contains(errOut, c.says) || out != "" || strings.Contains(errOut, "hunter2") {
			t.Errorf("%v: exit code %d, %q %q; want %d, %q", c.args, code, out, errOut, c.code, c.says)
		}
	}
}
