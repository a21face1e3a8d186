package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"treeline/internal/sandbox"
)

// Sandbox measures a driver on its own, n times each: a first program sealed beside the same one bare, a tree of many files
// beside one of few, and this process's memory while a program prints 1 GiB beside what it is for one that prints 1 MiB.
// It writes the rest of what it found to out, since not all of it is a ratio of times.
func Sandbox(ctx context.Context, d sandbox.Driver, n int, out, progress io.Writer) error {
	report, err := d.Probe(ctx)
	if err != nil {
		return err
	}
	bare := func() error { return barePython(ctx, report.Python.Path) }
	sealed := func() error { return sealedRun(ctx, d, "print(1)", 0) }
	fmt.Fprintln(progress, "print(1), sealed and bare")
	one := Row{Name: "print(1) sealed: start, run, take, close", Peer: "bare python3 -c 'print(1)'", Limit: 2}
	if err := errors.Join(sealed(), bare(), inTurns(n, &one, sealed, bare)); err != nil {
		return err
	}
	fmt.Fprintln(progress, "1,000 files and 10 files")
	files := Row{Name: "the same with 1,000 files of 4 KB put and taken", Peer: "with 10 of them"}
	err = inTurns(n, &files, func() error { return sealedRun(ctx, d, "print(1)", 1000) }, func() error { return sealedRun(ctx, d, "print(1)", 10) })
	if err != nil {
		return err
	}
	Print(out, []Row{one, files})
	more := files.Mine.Quantile(0.5) - files.Others.Quantile(0.5)
	fmt.Fprintf(out, "\n990 more files take %s more (aim: less than 30 ms)\n", ms(more))
	fmt.Fprintln(progress, "1 GiB of output")
	little, err := memoryWhile(ctx, d, 1)
	if err != nil {
		return err
	}
	much, err := memoryWhile(ctx, d, 1024)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "the worker's memory at most while 1 GiB is printed: %d MiB; while 1 MiB is: %d MiB (aim: flat)\n", much>>20, little>>20)
	return nil
}

func barePython(ctx context.Context, python string) error {
	cmd := exec.CommandContext(ctx, python, "-c", "print(1)")
	cmd.Env = []string{"PATH=/usr/local/bin:/usr/bin:/bin"}
	b, err := cmd.Output()
	if err != nil || string(b) != "1\n" {
		return errors.Join(err, fmt.Errorf("a bare Python printed %q", b))
	}
	return nil
}

// sealedRun is a whole session: files in, the program, the tree out and every byte of it read.
func sealedRun(ctx context.Context, d sandbox.Driver, code string, files int) error {
	s, err := d.Start(ctx, sandbox.Spec{Label: "bench"})
	if err != nil {
		return err
	}
	content := bytes.Repeat([]byte("x"), 4096)
	for i := range files {
		if err := s.Put(ctx, fmt.Sprintf("workspace/d%d/f%d", i%10, i), bytes.NewReader(content)); err != nil {
			return errors.Join(err, s.Close())
		}
	}
	out, err := s.Run(ctx, sandbox.Program{Code: []byte(code)})
	if err == nil && (out.Reason != sandbox.OK || out.Stdout.Head != "1\n") {
		err = fmt.Errorf("it ended as %s and printed %q", out.Reason, out.Stdout.Head)
	}
	if err != nil {
		return errors.Join(err, s.Close())
	}
	tree, err := s.Take(ctx)
	if err == nil && len(tree.Files) != files {
		err = fmt.Errorf("%d files came back of %d", len(tree.Files), files)
	}
	return errors.Join(err, s.Close())
}

// memoryWhile gives the most that this process has in memory, in bytes, while a program prints so many MiB.
func memoryWhile(ctx context.Context, d sandbox.Driver, mib int) (int64, error) {
	s, err := d.Start(ctx, sandbox.Spec{Label: "bench"})
	if err != nil {
		return 0, err
	}
	ended := make(chan struct{})
	most := make(chan int64, 1)
	go func() {
		var peak int64
		for {
			peak = max(peak, resident())
			select {
			case <-ended:
				most <- peak
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
	}()
	code := fmt.Sprintf("import os\nb = b'x' * 65535 + b'\\n'\nfor i in range(%d): os.write(1, b)", mib*16)
	out, err := s.Run(ctx, sandbox.Program{Code: []byte(code), Output: func(sandbox.Stream, string) {}})
	close(ended)
	if err == nil && (out.Reason != sandbox.OK || out.Stdout.Total != int64(mib)<<20) {
		err = fmt.Errorf("it ended as %s and printed %d bytes", out.Reason, out.Stdout.Total)
	}
	return <-most, errors.Join(err, s.Close())
}

// resident gives what this process has in memory, in bytes; 0 where the kernel does not tell.
func resident() int64 {
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	var size, pages int64
	if _, err := fmt.Fscan(strings.NewReader(string(b)), &size, &pages); err != nil {
		return 0
	}
	return pages * int64(os.Getpagesize())
}
