package devenv

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// OldestPostgres is the first major version that Treeline works with.
const OldestPostgres = 15

// binEnv names the folder of the server's programs. Where it is set nothing else is looked at.
const binEnv = "TREELINE_POSTGRES_BIN"

// usualFolders is where packages put the server's programs, which many of them leave out of PATH.
var usualFolders = [...]string{
	"/usr/lib/postgresql/*/bin", // Debian, Ubuntu
	"/usr/pgsql-*/bin",          // Fedora, RHEL, from PostgreSQL's own packages
	"/usr/libexec/postgresql*",  // Alpine
	"/usr/local/pgsql/bin",      // built from source
	"/opt/homebrew/opt/postgresql@*/bin",
	"/opt/homebrew/bin",
	"/usr/local/opt/postgresql@*/bin",
	"/usr/bin",
}

// Binaries is a folder that has the programs postgres and initdb.
type Binaries struct {
	Folder string
	Major  int // version, such as 15
}

func (b Binaries) program(name string) string { return filepath.Join(b.Folder, name) }

// FindPostgres gives the server's programs as Start would find them for a new data folder, without fetching any:
// TREELINE_POSTGRES_BIN, else PATH, else the newest in the usual folders. The error says what to install.
func FindPostgres(ctx context.Context) (Binaries, error) {
	who, err := serverAccount("")
	if err != nil {
		return Binaries{}, err
	}
	found, err := finder{who: who, explicit: os.Getenv(binEnv)}.find(ctx)
	if err != nil {
		return Binaries{}, err
	}
	return found, nil
}

// finder looks for the server's programs.
type finder struct {
	who      account
	explicit string // the one folder to look at, empty for all the usual ones
	major    int    // the version that the data folder was made by, 0 for a new one
}

// find gives the first folder that will do. The error joins why each that was there would not.
func (f finder) find(ctx context.Context) (Binaries, error) {
	if f.explicit != "" {
		found, err := f.examine(ctx, f.explicit)
		if err != nil {
			return Binaries{}, fmt.Errorf("the PostgreSQL programs named by %s: %w", binEnv, err)
		}
		return found, nil
	}
	var reasons []error
	for _, folder := range candidates() {
		found, err := f.examine(ctx, folder)
		if err == nil {
			return found, nil
		}
		reasons = append(reasons, err)
	}
	return Binaries{}, &notFoundError{major: f.major, reasons: reasons}
}

// candidates are the folders that have a program postgres, in the order of preference.
func candidates() []string {
	var folders []string
	if path, err := exec.LookPath("postgres"); err == nil {
		folders = append(folders, filepath.Dir(path))
	}
	for _, pattern := range usualFolders {
		found, _ := filepath.Glob(pattern) // fails on a malformed pattern only
		slices.SortFunc(found, func(a, b string) int { return cmp.Compare(numberIn(b), numberIn(a)) })
		folders = append(folders, found...)
	}
	return slices.DeleteFunc(folders, func(folder string) bool {
		_, err := os.Stat(filepath.Join(folder, "postgres"))
		return err != nil
	})
}

var digits = regexp.MustCompile(`[0-9]+`)

func numberIn(path string) int {
	n, _ := strconv.Atoi(digits.FindString(path))
	return n
}

// examine says whether the programs in a folder will do. Links are followed, since PATH often has links to single
// programs and the server finds the rest of its installation beside itself.
func (f finder) examine(ctx context.Context, folder string) (Binaries, error) {
	real, err := filepath.EvalSymlinks(filepath.Join(folder, "postgres"))
	if err != nil {
		return Binaries{}, err
	}
	found := Binaries{Folder: filepath.Dir(real)}
	if _, err := os.Stat(found.program("initdb")); err != nil {
		return Binaries{}, err
	}
	if err := f.who.canEnter(found.Folder); err != nil {
		return Binaries{}, err
	}
	if found.Major, err = majorVersion(ctx, f.who, real); err != nil {
		return Binaries{}, err
	}
	if found.Major < OldestPostgres {
		return Binaries{}, fmt.Errorf("%s is of version %d: %d or later is needed", real, found.Major, OldestPostgres)
	}
	if f.major != 0 && found.Major != f.major {
		return Binaries{}, fmt.Errorf("%s is of version %d and the data folder was made by version %d", real, found.Major, f.major)
	}
	return found, nil
}

var versionLine = regexp.MustCompile(`\(PostgreSQL\) ([0-9]+)`)

func majorVersion(ctx context.Context, who account, program string) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "--version")
	cmd.Dir, cmd.Env, cmd.SysProcAttr = "/", serverEnvironment(), who.attributes()
	out, err := cmd.Output()
	if err != nil {
		return 0, fmt.Errorf("asking %s for its version: %w", program, err)
	}
	match := versionLine.FindSubmatch(out)
	if match == nil {
		return 0, fmt.Errorf("%s does not say its version: %q", program, strings.TrimSpace(string(out)))
	}
	return strconv.Atoi(string(match[1]))
}

// notFoundError says what to install.
type notFoundError struct {
	major   int
	reasons []error // why what was found will not do, and why none could be fetched
}

func (e *notFoundError) Error() string {
	wanted := fmt.Sprintf("PostgreSQL %d or later", OldestPostgres)
	if e.major != 0 {
		wanted = fmt.Sprintf("PostgreSQL %d, which made this data folder,", e.major)
	}
	text := fmt.Sprintf("%s was not found in PATH or the usual folders. Install the package postgresql (Debian, Ubuntu, Alpine), "+
		"postgresql-server (Fedora, RHEL) or postgresql@17 (Homebrew), or set %s to the folder of its programs postgres and initdb",
		wanted, binEnv)
	if len(e.reasons) > 0 {
		text += ". Looked at: " + strings.ReplaceAll(errors.Join(e.reasons...).Error(), "\n", "; ")
	}
	return text
}

func (e *notFoundError) Unwrap() []error { return e.reasons }

// serverEnvironment is all that a server's program gets of the environment: nothing of what configures this process or
// a Postgres client.
func serverEnvironment() []string {
	return []string{"PATH=/usr/local/bin:/usr/bin:/bin", "LC_ALL=C", "TZ=UTC"}
}
