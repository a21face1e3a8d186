// Package devtest gives tests real services: a Postgres database of their own and a NATS server of their own. Its
// helpers fail a test, and never skip it, where a service cannot be had.
//
// A package whose tests use a database has
//
//	func TestMain(m *testing.M) { devtest.Main(m) }
//
// The server is started by the first test that asks for a database, shared by the tests of the package, and ends with
// the test process.
package devtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"treeline/internal/devenv"
)

// folderPattern names the folder of one test process.
const folderPattern = "process-*"

// shared are the test process's servers; nil where Main does not run the tests. The testing package has no other way to
// hand something from TestMain to tests.
var shared *servers

// Main runs the tests, stops the servers that they shared, and exits with the tests' code.
func Main(m *testing.M) {
	shared = &servers{byKind: map[kind]*server{}, parent: filepath.Join("/tmp", "treeline-test-"+strconv.Itoa(os.Geteuid()))}
	code := m.Run()
	if err := shared.stop(); err != nil {
		fmt.Fprintln(os.Stderr, "devtest:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// Folder is an empty folder that a server run as another user can reach, which the one of t.TempDir is not for root. It
// is removed at the end of the test.
func Folder(t testing.TB) string {
	t.Helper()
	folder, err := newFolder("/tmp", "treeline-test-*")
	if err != nil {
		t.Fatalf("making a folder: %v", err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(folder); err != nil {
			t.Errorf("removing the folder: %v", err)
		}
	})
	return folder
}

func newFolder(parent, pattern string) (string, error) {
	folder, err := os.MkdirTemp(parent, pattern)
	if err != nil {
		return "", err
	}
	if os.Geteuid() == 0 {
		return folder, os.Chmod(folder, 0o711)
	}
	return folder, nil
}

// NATS is a server of the test's own, with empty streams. It is stopped at the end of the test.
func NATS(t testing.TB) *devenv.NATS {
	t.Helper()
	server := devenv.NewNATS(devenv.NATSConfig{Folder: filepath.Join(Folder(t), "nats")})
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	return server
}

// sweep removes the folders of test processes that were killed: those that nobody holds.
func sweep(ctx context.Context, parent string) error {
	left, err := filepath.Glob(filepath.Join(parent, folderPattern))
	for _, path := range left {
		err = errors.Join(err, sweepOne(ctx, path))
	}
	return err
}

func sweepOne(ctx context.Context, path string) error {
	folder, err := devenv.OpenFolder(path)
	if inUse(err) {
		return nil
	}
	if err != nil {
		return err
	}
	servers, err := filepath.Glob(folder.Join("*", "data"))
	for _, data := range servers {
		err = errors.Join(err, devenv.StopLeftover(ctx, filepath.Dir(data)))
	}
	return errors.Join(err, os.RemoveAll(path), folder.Close())
}

func inUse(err error) bool {
	var held *devenv.FolderInUseError
	return errors.As(err, &held)
}
