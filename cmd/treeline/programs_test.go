package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"treeline/internal/call"
	"treeline/internal/devenv/devtest"
)

// writer collects what a process writes, while it does.
type writer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (w *writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.Write(p)
}

func (w *writer) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.String()
}

// program is one that runs.
type program struct {
	name   string
	cmd    *exec.Cmd
	lines  chan string // of standard output; closed at its end
	stderr *writer
}

func start(t *testing.T, name string, cmd *exec.Cmd) *program {
	t.Helper()
	p := &program{name: name, cmd: cmd, lines: make(chan string, 1000), stderr: &writer{}}
	cmd.Stderr = p.stderr
	out, in := io.Pipe()
	cmd.Stdout = in
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var reading sync.WaitGroup
	reading.Go(func() {
		defer close(p.lines)
		for scanner := bufio.NewScanner(out); scanner.Scan(); {
			p.lines <- scanner.Text()
		}
	})
	t.Cleanup(func() {
		if cmd.ProcessState == nil {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
		_ = in.Close()
		reading.Wait()
	})
	return p
}

// line reads the next line of standard output.
func (p *program) line(t *testing.T) string {
	t.Helper()
	select {
	case line := <-p.lines:
		return line
	case <-time.After(30 * time.Second):
		t.Fatalf("%s says nothing\n%s", p.name, p.stderr)
		return ""
	}
}

// stop has it end as an operator does, and gives its exit code.
func (p *program) stop(t *testing.T) int {
	t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	late := time.AfterFunc(30*time.Second, func() { _ = p.cmd.Process.Kill() })
	defer late.Stop()
	_ = p.cmd.Wait()
	return p.cmd.ProcessState.ExitCode()
}

// build builds the programs of cmd as they are deployed.
func build(t *testing.T) string {
	t.Helper()
	folder := devtest.Folder(t)
	cmd := exec.Command("go", "build", "-o", folder, "treeline/cmd/...")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build the programs: %v\n%s", err, out)
	}
	if err := os.Chmod(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	return folder
}

func TestPrograms(t *testing.T) {
	unset(t)
	folder := build(t)
	t.Run("refuse to start on nothing", func(t *testing.T) { refuseToStartOnNothing(t, folder) })
	t.Run("initialise little as a sandbox's process", func(t *testing.T) { childrenInitialiseLittle(t, folder) })
	t.Run("run one role each", func(t *testing.T) { runOneRoleEach(t, folder) })
	t.Run("up starts again on the same data", func(t *testing.T) { upStartsAgain(t, folder) })
}

func runOneRoleEach(t *testing.T, folder string) {
	const key = "the-portals-own-key"
	keyFile := filepath.Join(folder, "key")
	if err := os.WriteFile(keyFile, []byte(key+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	database, queue := devtest.Postgres(t, nil), devtest.NATS(t)
	env := append(os.Environ(), "TREELINE_DATABASE_URL="+database.URL, "TREELINE_NATS_URL="+queue.URL(), "TREELINE_LISTEN=127.0.0.1:0",
		"TREELINE_PORTAL_KEY_FILE="+keyFile, "TREELINE_DB_CONNECTIONS=6", "TREELINE_GRACE=10s", "TREELINE_STOP_NOTICE=1s")
	command := func(name string, args ...string) *exec.Cmd {
		cmd := exec.Command(filepath.Join(folder, name), args...)
		cmd.Env = env
		return cmd
	}
	if out, err := command("treeline", "migrate").CombinedOutput(); err != nil {
		t.Fatalf("migrate: %v\n%s", err, out)
	}
	dispatcher := start(t, "dispatcher", command("dispatcher"))
	url, ok := strings.CutPrefix(dispatcher.line(t), "ready ")
	if !ok {
		t.Fatalf("the dispatcher is not ready\n%s", dispatcher.stderr)
	}
	workers := []*program{
		start(t, "fileworker", command("fileworker")), start(t, "fileworker", command("fileworker")), start(t, "codeworker", command("codeworker")),
	}
	tail := start(t, "tail", command("treeline", "tail", "k1"))
	waitSubscribed(t, tail, func() {
		code, out, errOut := treeline(t, "call", "--url="+url, "--key-file="+keyFile, "--conversation=k1", "list_files")
		if code != 0 || !strings.Contains(out, "0 files") {
			t.Fatalf("list_files: exit code %d, %s %s", code, out, errOut)
		}
	})

	const arguments = `{"code":"print(6*7); open('workspace/n.txt','w').write('42\\n')"}`
	code, out, errOut := treeline(t, "call", "--url="+url, "--key-file="+keyFile, "--conversation=k1", "--call-id=c2", "--json", "run_code", arguments)
	var result call.Result
	if err := json.Unmarshal([]byte(out), &result); err != nil || code != 0 {
		t.Fatalf("run_code: exit code %d, %v, %s%s", code, err, out, errOut)
	}
	if result.Status != call.OK || !slices.Equal(result.Changes.Created, []string{"n.txt"}) || result.CallID != "c2" {
		t.Errorf("run_code: %+v", result)
	}
	code, out, errOut = treeline(t, "call", "--url="+url, "--key-file="+keyFile, "--conversation=k1", "read_file", `{"path":"m.txt"}`)
	if code != 3 || !strings.Contains(out, "n.txt") || !strings.Contains(errOut, "refused path_not_found") {
		t.Errorf("read_file of what is not there: exit code %d, %s %s", code, out, errOut)
	}
	for _, want := range []string{"/c2 run_code seq ", "read_file seq "} {
		for line := tail.line(t); !strings.Contains(line, want); line = tail.line(t) {
			if !strings.Contains(line, "k1/") {
				t.Fatalf("tail says %q before a line with %q", line, want)
			}
		}
	}

	password := strings.Split(strings.TrimPrefix(queue.URL(), "nats://treeline:"), "@")[0]
	for _, p := range append(workers, tail, dispatcher) {
		if code := p.stop(t); code != 0 {
			t.Errorf("%s: exit code %d\n%s", p.name, code, p.stderr)
		}
		log := p.stderr.String()
		if strings.Contains(log, password) || strings.Contains(log, key) {
			t.Errorf("%s has logged a secret", p.name)
		}
		for line := range strings.Lines(log) {
			if !json.Valid([]byte(line)) {
				t.Errorf("%s logs %q, which is not JSON", p.name, line)
			}
		}
	}
}

// waitSubscribed acts again and again until tail has heard of it.
func waitSubscribed(t *testing.T, tail *program, act func()) {
	t.Helper()
	for {
		act()
		select {
		case line := <-tail.lines:
			if !strings.Contains(line, "list_files seq ") || !strings.HasSuffix(line, " ok") {
				t.Fatalf("tail says %q", line)
			}
			return
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func refuseToStartOnNothing(t *testing.T, folder string) {
	for _, name := range []string{"dispatcher", "fileworker", "codeworker"} {
		cmd := exec.Command(filepath.Join(folder, name))
		out, _ := cmd.CombinedOutput()
		if cmd.ProcessState.ExitCode() != 2 || !strings.Contains(string(out), "missing flags: --database-url=URL, --nats-url=URL") {
			t.Errorf("%s: exit code %d, %s", name, cmd.ProcessState.ExitCode(), out)
		}
		help, err := exec.Command(filepath.Join(folder, name), "--help").CombinedOutput()
		if err != nil || !strings.Contains(string(help), "[default 30s, $TREELINE_LEASE]") {
			t.Errorf("%s --help: %v\n%s", name, err, help)
		}
	}
}

// upStartsAgain has the whole fleet as people start it: it says where it serves, stops on SIGTERM, starts again on the same
// data with nothing lost, and refuses a folder in use.
func upStartsAgain(t *testing.T, folder string) {
	program, data := filepath.Join(folder, "treeline"), filepath.Join(devtest.Folder(t), "data")
	args := []string{"up", "--listen=127.0.0.1:0", "--data=" + data, "--code-workers=0"}
	keyFile := "--key-file=" + filepath.Join(data, "portal-key")
	first := start(t, "up", exec.Command(program, args...))
	url := strings.TrimPrefix(first.line(t), "ready ")
	code, out, errOut := treeline(t, "call", "--url="+url, keyFile, "--conversation=k1", "write_file", `{"path":"a.txt","content":"kept\n"}`)
	if code != 0 {
		t.Fatalf("write_file: exit code %d, %s %s\n%s", code, out, errOut, first.stderr)
	}
	if out, err := exec.Command(program, args...).CombinedOutput(); err == nil || !strings.Contains(string(out), "is in use by process") {
		t.Errorf("a second up on the folder: %v, %s", err, out)
	}
	if code := first.stop(t); code != 0 {
		t.Errorf("exit code %d\n%s", code, first.stderr)
	}
	info, err := os.Stat(filepath.Join(data, "portal-key"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key's file: %v %v", info, err)
	}
	second := start(t, "up", exec.Command(program, args...))
	url = strings.TrimPrefix(second.line(t), "ready ")
	code, out, errOut = treeline(t, "call", "--url="+url, keyFile, "--conversation=k1", "read_file", `{"path":"a.txt"}`)
	if code != 0 || !strings.Contains(out, "1\tkept") {
		t.Errorf("read_file: exit code %d, %s %s", code, out, errOut)
	}
	if code := second.stop(t); code != 0 {
		t.Errorf("exit code %d\n%s", code, second.stderr)
	}
}
