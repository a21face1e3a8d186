package bench

import (
	"io"
	"os"
	"regexp"
	"strings"
	"testing"

	"treeline/internal/sandbox/local"
)

func TestMain(m *testing.M) {
	local.MaybeChild()
	os.Exit(m.Run())
}

func TestTheSandboxIsMeasured(t *testing.T) {
	d, err := local.New(local.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	var out strings.Builder
	if err := Sandbox(t.Context(), d, 1, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`(?m)^\| print\(1\) sealed: start, run, take, close \| [0-9.]+ ms \| .* \| at most 2\.0 \|$`,
		`(?m)^\| the same with 1,000 files of 4 KB put and taken \| [0-9.]+ ms \| `,
		`(?m)^990 more files take -?[0-9.]+ ms more \(aim: less than 30 ms\)$`,
		`(?m)^the worker's memory at most while 1 GiB is printed: [0-9]+ MiB; while 1 MiB is: [0-9]+ MiB \(aim: flat\)$`,
	} {
		if !regexp.MustCompile(want).MatchString(out.String()) {
			t.Errorf("no line is like %s in\n%s", want, out.String())
		}
	}
}

// TestLongOutputLeavesTheMeasurersMemoryFlat holds the measurement to its aim: memory cannot be busy as a clock can.
func TestLongOutputLeavesTheMeasurersMemoryFlat(t *testing.T) {
	d, err := local.New(local.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	little, err := memoryWhile(t.Context(), d, 1)
	if err != nil {
		t.Fatal(err)
	}
	much, err := memoryWhile(t.Context(), d, 1024)
	if err != nil {
		t.Fatal(err)
	}
	if much-little > 32<<20 {
		t.Errorf("%d MiB while 1 GiB is printed, %d MiB while 1 MiB is", much>>20, little>>20)
	}
}
