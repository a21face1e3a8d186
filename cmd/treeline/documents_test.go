package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var documents = []string{"README.md", "ARCHITECTURE.md", "docs/configuration.md", "docs/operations.md"}

// What the documents name is there: tests, folders, files, settings, commands, and the pages that they link to.
func TestDocumentsNameWhatThereIs(t *testing.T) {
	const root = "../.."
	tests := testNames(t, root)
	known := map[string]bool{"TREELINE_POSTGRES_BIN": true, "TREELINE_URL": true, "TREELINE_TOKEN": true, "TREELINE_CALLS": true, "TREELINE_RESULTS": true}
	for _, s := range settings(t) {
		known[s.name] = true
	}
	commands := map[string]bool{}
	parser, err := newParser(&cli{})
	if err != nil {
		t.Fatal(err)
	}
	for _, node := range parser.Model.Children {
		commands[node.Name] = true
	}
	exists := func(path string) bool {
		_, err := os.Stat(filepath.Join(root, path))
		return err == nil
	}
	for _, document := range documents {
		content, err := os.ReadFile(filepath.Join(root, document))
		if err != nil {
			t.Fatal(err)
		}
		text := string(content)
		for _, c := range []struct {
			what, pattern string
			there         func(string) bool
		}{
			{"test", "`(Test[A-Za-z]+)`", func(name string) bool { return tests[name] }},
			{"path", "`((?:internal|cmd|schemas|docs|client|deploy)(?:/[a-z_./]+)?)`", exists},
			{"setting", `\b(TREELINE_[A-Z_]+)\b`, func(name string) bool { return known[name] }},
			{"command", `(?:bin/treeline|cmd/treeline|` + "`treeline|\n *treeline" + `) ([a-z]+)`, func(name string) bool { return commands[name] }},
			{"page", `\]\(([A-Za-z/._-]+)\)`, func(page string) bool {
				return page == "measurements.md" || exists(filepath.Join(filepath.Dir(document), page))
			}},
		} {
			for _, found := range regexp.MustCompile(c.pattern).FindAllStringSubmatch(text, -1) {
				if !c.there(found[1]) {
					t.Errorf("%s names the %s %s, which is not there", document, c.what, found[1])
				}
			}
		}
	}
}

func testNames(t *testing.T, root string) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		content, err := os.ReadFile(path)
		for _, found := range declared.FindAllStringSubmatch(string(content), -1) {
			names[found[1]] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}
