// Package endtoend_test plays whole jobs, as a portal and an orchestrator would: over HTTP alone, against the programs as
// they are deployed, each in a process of its own.
package endtoend_test

import (
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"treeline/internal/devenv/devtest"
)

func TestMain(m *testing.M) { devtest.Main(m) }

// python is the interpreter of the sandbox.
const python = "/usr/bin/python3"

// packages are Debian's, of what the jobs' code imports: each is named by its module.
var packages = []string{"numpy", "pandas", "openpyxl", "matplotlib"}

func needPython(t *testing.T) {
	t.Helper()
	const missing = `import importlib.util, sys; print(*["python3-" + m for m in sys.argv[1:] if not importlib.util.find_spec(m)])`
	out, err := exec.Command(python, append([]string{"-c", missing}, packages...)...).Output()
	if err != nil {
		t.Fatalf("%s: %v; the jobs need it with the packages of %s", python, err, strings.Join(packages, ", "))
	}
	if names := strings.TrimSpace(string(out)); names != "" {
		t.Fatalf("%s lacks what the jobs use; install %s", python, names)
	}
}

// jobsAtOnce is how many jobs one small fleet has to do at the same time.
const jobsAtOnce = 20

func TestARealJob(t *testing.T) {
	needPython(t)
	f := startFleet(t)
	t.Run("alone", func(t *testing.T) {
		together(func() { newJob(t, f, "alone", 1).do() })
	})
	t.Run("twenty at once", func(t *testing.T) {
		m := watchMemory(t, f.processes)
		jobs := make([]func(), jobsAtOnce)
		for i := range jobs {
			jobs[i] = newJob(t, f, fmt.Sprintf("j%02d", i), uint64(100+i)).do
		}
		together(jobs...)
		m.end(t)
	})
	// Last: the kernel's mark of the highest is that of a process's whole life.
	t.Run("a file that fills the workspace", func(t *testing.T) {
		m := watchMemory(t, f.processes)
		together(newJob(t, f, "large", 2).fill)
		m.end(t)
	})
}

// together has all of them go on at the same time, and waits for their ends. Each may end its goroutine early.
func together(jobs ...func()) {
	var running sync.WaitGroup
	for _, job := range jobs {
		running.Go(job)
	}
	running.Wait()
}
