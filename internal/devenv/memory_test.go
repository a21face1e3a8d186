package devenv

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// sluggish makes a folder of the server's programs in which the server fails the given number of times, as one does that
// finds the shared memory of a killed one held.
func sluggish(t *testing.T, failures int) string {
	t.Helper()
	found, err := FindPostgres(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	folder := openFolder(t)
	for _, name := range []string{"initdb", "pg_ctl", "psql"} {
		if err := os.Symlink(found.program(name), filepath.Join(folder, name)); err != nil {
			t.Fatal(err)
		}
	}
	tries := filepath.Join(folder, "tries")
	if err := os.WriteFile(tries, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(tries, 0o666); err != nil { // the server may have an account of its own
		t.Fatal(err)
	}
	script := fmt.Sprintf(`#!/bin/sh
case "$*" in *%[1]s*)
	if [ "$(wc -c < %[2]s)" -lt %[3]d ]; then
		printf x >> %[2]s
		echo 'FATAL:  pre-existing shared memory block (key 1, ID 2) is still in use' >&2
		exit 1
	fi
esac
exec %[4]s "$@"
`, ourMark, tries, failures, found.program("postgres"))
	if err := os.WriteFile(filepath.Join(folder, "postgres"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	return folder
}

func TestAServerStartsOnceTheMemoryOfAKilledOneIsFree(t *testing.T) {
	postgres := started(t, PostgresConfig{Bin: sluggish(t, 3)})
	select {
	case <-postgres.Done():
		t.Error("the server ended")
	default:
	}
}

func TestAServerWhoseMemoryIsHeldForGoodIsGivenUp(t *testing.T) {
	postgres := NewPostgres(PostgresConfig{Folder: filepath.Join(openFolder(t), "postgres"), NoSync: true, Bin: sluggish(t, 1_000_000)})
	err := postgres.Start(t.Context())
	if !errors.Is(err, errMemoryHeld) || !strings.Contains(err.Error(), "is still in use") {
		t.Errorf("started with %v", err)
	}
	if err := postgres.Stop(); err != nil {
		t.Error(err)
	}
}
