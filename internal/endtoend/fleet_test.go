package endtoend_test

import (
	"bufio"
	"bytes"
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

	"treeline/internal/devenv/devtest"
	"treeline/internal/store"
)

// portalKey opens the portal's routes.
const portalKey = "the-portals-own-key"

// fleet is one process of each role.
type fleet struct {
	url       string
	processes []*process
}

// process is one of the fleet's.
type process struct {
	name string
	cmd  *exec.Cmd
	log  *lockedBuffer
}

// lockedBuffer keeps what a process writes to standard error.
type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// startFleet builds the programs and starts them on a database and a queue of the test's own. They are told to stop at
// the end of the test, and have to do so cleanly.
func startFleet(t *testing.T) *fleet {
	t.Helper()
	folder := devtest.Folder(t)
	roles := []string{"dispatcher", "fileworker", "codeworker"}
	build := exec.Command("go", "build", "-o", folder)
	for _, role := range roles {
		build.Args = append(build.Args, "treeline/cmd/"+role)
	}
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the programs: %v\n%s", err, out)
	}
	if err := os.Chmod(folder, 0o755); err != nil { // the sandbox's user runs the code worker's binary too
		t.Fatal(err)
	}
	env := slices.DeleteFunc(os.Environ(), func(pair string) bool { return strings.HasPrefix(pair, "TREELINE_") })
	env = append(env, "TREELINE_DATABASE_URL="+devtest.Postgres(t, store.Migrate).URL, "TREELINE_NATS_URL="+devtest.NATS(t).URL(),
		"TREELINE_LISTEN=127.0.0.1:0", "TREELINE_PORTAL_KEY="+portalKey, "TREELINE_PYTHON="+python)
	f := &fleet{}
	for _, role := range roles {
		p, out := startProcess(t, role, filepath.Join(folder, role), env)
		f.processes = append(f.processes, p)
		if role == "dispatcher" {
			f.url = p.ready(t, out)
		}
	}
	return f
}

func startProcess(t *testing.T, name, file string, env []string) (*process, io.Reader) {
	t.Helper()
	p := &process{name: name, cmd: exec.Command(file), log: &lockedBuffer{}}
	p.cmd.Env, p.cmd.Stderr = env, p.log
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatalf("start the %s: %v", name, err)
	}
	t.Cleanup(func() { p.stop(t) })
	return p, out
}

// ready gives the address that the process says it serves at.
func (p *process) ready(t *testing.T, out io.Reader) string {
	t.Helper()
	line := make(chan string, 1)
	var reading sync.WaitGroup
	reading.Go(func() {
		first, _ := bufio.NewReader(out).ReadString('\n') // no line is no address
		line <- first
	})
	late := time.AfterFunc(time.Minute, func() { _ = p.cmd.Process.Kill() }) // which ends the reading
	reading.Wait()
	late.Stop()
	url, ok := strings.CutPrefix(strings.TrimSpace(<-line), "ready ")
	if !ok {
		t.Fatalf("the %s does not get ready\n%s", p.name, p.log)
	}
	return url
}

// stop ends the process as an operator does.
func (p *process) stop(t *testing.T) {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Errorf("stop the %s: %v", p.name, err)
	}
	late := time.AfterFunc(time.Minute, func() { _ = p.cmd.Process.Kill() })
	defer late.Stop()
	if err := p.cmd.Wait(); err != nil {
		t.Errorf("the %s did not stop cleanly: %v", p.name, err)
	}
	if !t.Failed() {
		return
	}
	for line := range strings.Lines(p.log.String()) {
		if !strings.Contains(line, `"level":"info"`) { // of requests there are thousands
			t.Logf("the %s logged %s", p.name, strings.TrimSuffix(line, "\n"))
		}
	}
}
