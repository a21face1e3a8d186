package devenv

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// programs makes a folder with a postgres that prints a version, and an initdb.
func programs(t *testing.T, version string) string {
	t.Helper()
	folder := openFolder(t)
	for _, name := range []string{"postgres", "initdb"} {
		script := "#!/bin/sh\necho '" + version + "'\n"
		if err := os.WriteFile(filepath.Join(folder, name), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

func TestTheProgramsOnThisMachineAreFound(t *testing.T) {
	found, err := FindPostgres(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"postgres", "initdb"} {
		if _, err := os.Stat(filepath.Join(found.Folder, name)); err != nil {
			t.Error(err)
		}
	}
	if found.Major < OldestPostgres {
		t.Errorf("version %d, want %d or later", found.Major, OldestPostgres)
	}
}

func TestTheFolderNamedIsTheOneExamined(t *testing.T) {
	for _, c := range []struct {
		name, version string
		major         int // of the data folder
		want          int
		err           string
	}{
		{name: "a packaged version", version: "postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)", want: 15},
		{name: "a version to come", version: "postgres (PostgreSQL) 19beta1", want: 19},
		{name: "that of the data folder", version: "postgres (PostgreSQL) 17.2", major: 17, want: 17},
		{name: "too old", version: "postgres (PostgreSQL) 14.9", err: "is of version 14: 15 or later is needed"},
		{name: "not that of the data folder", version: "postgres (PostgreSQL) 17.2", major: 16,
			err: "is of version 17 and the data folder was made by version 16"},
		{name: "something else", version: "hello", err: `does not say its version: "hello"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			folder := programs(t, c.version)
			found, err := finder{explicit: folder, major: c.major}.find(t.Context())
			if c.err != "" {
				wantError(t, err, c.err, folder, "TREELINE_POSTGRES_BIN")
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if want := (Binaries{Folder: folder, Major: c.want}); found != want {
				t.Errorf("found %v, want %v", found, want)
			}
		})
	}
}

func TestTheFolderNamedMustHaveBothPrograms(t *testing.T) {
	folder := programs(t, "postgres (PostgreSQL) 15.1")
	if err := os.Remove(filepath.Join(folder, "initdb")); err != nil {
		t.Fatal(err)
	}
	_, err := finder{explicit: folder}.find(t.Context())
	wantError(t, err, filepath.Join(folder, "initdb"), "no such file")
}

func TestALinkInPathLeadsToTheInstallation(t *testing.T) {
	folder := programs(t, "postgres (PostgreSQL) 15.1")
	links := openFolder(t)
	if err := os.Symlink(filepath.Join(folder, "postgres"), filepath.Join(links, "postgres")); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", links)
	found, err := finder{}.find(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if want := (Binaries{Folder: folder, Major: 15}); found != want {
		t.Errorf("found %v, want %v", found, want)
	}
}

func TestWhatIsMissingIsToldWithWhatToInstall(t *testing.T) {
	folder := programs(t, "postgres (PostgreSQL) 9.6.24")
	t.Setenv("PATH", folder)
	_, err := finder{major: 99}.find(t.Context())
	var missing *notFoundError
	if !errors.As(err, &missing) {
		t.Fatalf("%v, want a notFoundError", err)
	}
	wantError(t, err, "PostgreSQL 99, which made this data folder,", "postgresql (Debian, Ubuntu, Alpine)", "postgresql-server (Fedora, RHEL)",
		"set TREELINE_POSTGRES_BIN", folder+"/postgres is of version 9")
}

// repository serves the stand-in for a release as the public repository does.
func repository(t *testing.T) *httptest.Server {
	t.Helper()
	programs, err := os.ReadFile("testdata/programs.txz")
	if err != nil {
		t.Fatal(err)
	}
	var jar bytes.Buffer
	archive := zip.NewWriter(&jar)
	entry, err := archive.Create("postgres-test.txz")
	if err == nil {
		_, err = entry.Write(programs)
	}
	if err := errors.Join(err, archive.Close()); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(jar.Bytes())
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !strings.Contains(r.URL.Path, "/17."):
			http.NotFound(w, r)
		case strings.HasSuffix(r.URL.Path, ".sha256"):
			_, _ = w.Write([]byte(hex.EncodeToString(sum[:])))
		default:
			_, _ = w.Write(jar.Bytes())
		}
	}))
	t.Cleanup(server.Close)
	return server
}

func TestProgramsThatAreMissingAreFetchedOnce(t *testing.T) {
	server := repository(t)
	cache := openFolder(t)
	fetch := fetcher{cache: cache, from: server.URL}
	want := Binaries{Folder: filepath.Join(cache, "postgres", "17.5.0", "bin"), Major: 17}
	found, err := fetch.fetch(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if found != want {
		t.Errorf("found %v, want %v", found, want)
	}
	server.Close()
	if found, err = fetch.fetch(t.Context()); err != nil || found != want {
		t.Errorf("the second time: %v, %v, want %v without the network", found, err, want)
	}
}

func TestWhatCannotBeFetchedLeavesNothing(t *testing.T) {
	server := repository(t)
	cache := openFolder(t)
	_, err := fetcher{cache: cache, from: server.URL, major: 16}.fetch(t.Context())
	wantError(t, err, "fetching PostgreSQL 16")
	_, err = fetcher{cache: cache, from: server.URL, major: 12}.fetch(t.Context())
	wantError(t, err, "PostgreSQL 12 cannot be fetched")
	left, err := os.ReadDir(filepath.Join(cache, "postgres"))
	if err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
