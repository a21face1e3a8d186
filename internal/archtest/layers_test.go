package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "treeline/"

// layers has every part of the project at its height. A part imports from lower layers only, and never sideways; the
// packages below a part's folder belong to it. A new part is given its place here.
var layers = [][]string{
	{"schemas", "internal/call", "internal/strictjson", "internal/calculator", "internal/picture", "internal/outage", "internal/telemetry"},
	{"internal/workspace", "internal/sandbox", "internal/devenv", "internal/archtest"},
	{"internal/catalogue", "internal/turn"},
	{"internal/store"},
	{"internal/artifact", "internal/skill", "internal/upload"},
	{"internal/ledger"},
	{"internal/queue", "internal/console"},
	{"internal/worker"},
	{"internal/dispatch", "internal/fileworker", "internal/codeworker"},
	{"internal/input"},
	{"internal/role"},
	{"internal/fleet"},
	{"internal/bench", "internal/torture"},
	{"cmd"},
}

// outside are the parts for other programs to import: the fleet does not, and they take nothing but the words.
var outside = map[string][]string{
	"client": {"schemas", "internal/call", "internal/strictjson"},
}

// pure are the parts that reach nothing outside the process and do not wait: what they give depends on what they are
// given alone.
var pure = []string{"schemas", "internal/call", "internal/strictjson", "internal/calculator", "internal/picture", "internal/workspace"}

// impure are imports, with what is below them, that a pure part does without.
var impure = []string{
	"context", "database/sql", "io/ioutil", "log", "math/rand", "net", "os", "os/exec", "path/filepath", "plugin", "syscall", "testing",
	"github.com/jackc", "github.com/nats-io", "github.com/rs/zerolog", "github.com/aws", "golang.org/x/sys", "golang.org/x/net",
}

// harmless are the only names that a pure part may use of an impure import.
var harmless = map[string][]string{
	"net/http": {"DetectContentType"}, // looks at bytes and does no more
	"net/url":  {"PathEscape", "PathUnescape", "QueryEscape", "QueryUnescape"},
}

// devenvUsers run the services of one machine; all others are given addresses.
var devenvUsers = []string{"internal/fleet", "internal/bench", "internal/torture", "cmd", "internal/devenv"}

// pkg is the non-test source of one package.
type pkg struct {
	path  string // within the module
	files []*ast.File
}

func packages(t *testing.T) []pkg {
	t.Helper()
	const root = "../.."
	found := map[string]*pkg{}
	set := token.NewFileSet()
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		if entry.IsDir() {
			if path != root && (strings.HasPrefix(name, ".") || name == "testdata" || name == "tools") {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		if found[rel] == nil {
			found[rel] = &pkg{path: rel}
		}
		found[rel].files = append(found[rel].files, file)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(found) < 10 {
		t.Fatalf("only %d packages were found", len(found))
	}
	var all []pkg
	for _, path := range slices.Sorted(maps.Keys(found)) {
		all = append(all, *found[path])
	}
	return all
}

// forTests tells the packages that only tests import, such as dispatch/dispatchtest: they may take from anywhere.
func (p pkg) forTests() bool { return strings.HasSuffix(p.path, "test") }

func (p pkg) imports() []string {
	all := map[string]bool{}
	for _, file := range p.files {
		for _, spec := range file.Imports {
			all[importPath(spec)] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

func importPath(spec *ast.ImportSpec) string {
	path, _ := strconv.Unquote(spec.Path.Value) // the parser took it
	return path
}

func within(path, folder string) bool { return path == folder || strings.HasPrefix(path, folder+"/") }

// part gives the part that a package belongs to and its height; false where it has no place.
func part(path string) (string, int, bool) {
	for height, layer := range layers {
		for _, name := range layer {
			if within(path, name) {
				return name, height, true
			}
		}
	}
	return "", 0, false
}

func TestImportsPointDown(t *testing.T) {
	for _, p := range packages(t) {
		if allowed, ok := outside[p.path]; ok {
			for _, path := range p.imports() {
				if own, ok := strings.CutPrefix(path, module); ok && !slices.Contains(allowed, own) {
					t.Errorf("%s is for other programs and imports %s", p.path, own)
				}
			}
			continue
		}
		name, height, ok := part(p.path)
		if !ok {
			t.Errorf("%s has no place in the layers: give it one in this test, and in the description of the layout", p.path)
			continue
		}
		for _, path := range p.imports() {
			own, ok := strings.CutPrefix(path, module)
			if !ok || p.forTests() {
				continue
			}
			imported, below, _ := part(own)
			if imported != name && below >= height {
				t.Errorf("%s imports %s, which is not below it", p.path, own)
			}
			if strings.HasSuffix(own, "test") {
				t.Errorf("%s imports %s, which is for tests", p.path, own)
			}
		}
	}
}

func TestPurePartsReachNothingOutside(t *testing.T) {
	for _, p := range packages(t) {
		if !slices.ContainsFunc(pure, func(name string) bool { return within(p.path, name) }) {
			continue
		}
		for _, path := range p.imports() {
			if own, ok := strings.CutPrefix(path, module); ok && !slices.Contains(pure, own) {
				t.Errorf("%s is pure and imports %s, which is not", p.path, own)
			}
			if !slices.ContainsFunc(impure, func(name string) bool { return within(path, name) }) {
				continue
			}
			for _, used := range p.uses(path) {
				if !slices.Contains(harmless[path], used) {
					t.Errorf("%s is pure and uses %s of %s", p.path, used, path)
				}
			}
		}
	}
}

// uses lists the names that a package uses of an import: "everything" where it is imported under no name.
func (p pkg) uses(path string) []string {
	used := map[string]bool{}
	for _, file := range p.files {
		for _, spec := range file.Imports {
			if importPath(spec) != path {
				continue
			}
			name := path[strings.LastIndex(path, "/")+1:]
			if spec.Name != nil {
				name = spec.Name.Name
			}
			if name == "." || name == "_" {
				used["everything"] = true
			}
			ast.Inspect(file, func(node ast.Node) bool {
				if selector, ok := node.(*ast.SelectorExpr); ok {
					if from, ok := selector.X.(*ast.Ident); ok && from.Name == name {
						used[selector.Sel.Name] = true
					}
				}
				return true
			})
		}
	}
	return slices.Sorted(maps.Keys(used))
}

func TestOnlyTheWholeFleetRunsItsOwnServices(t *testing.T) {
	for _, p := range packages(t) {
		if p.forTests() || slices.ContainsFunc(devenvUsers, func(name string) bool { return within(p.path, name) }) {
			continue
		}
		for _, path := range p.imports() {
			if within(path, module+"internal/devenv") {
				t.Errorf("%s imports %s", p.path, path)
			}
		}
	}
}

func TestPackagesAreNamedByWhatTheyHold(t *testing.T) {
	for _, p := range packages(t) {
		last := p.path[strings.LastIndex(p.path, "/")+1:]
		if slices.Contains([]string{"util", "utils", "common", "helper", "helpers", "types", "misc", "shared", "base"}, last) {
			t.Errorf("%s is named by nothing that it holds", p.path)
		}
	}
}
