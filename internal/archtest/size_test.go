package archtest

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// longest is the most lines of a file that one reads in one go. (A table of cases may be longer.)
const longest = 500

func TestFilesAreReadableTopToBottom(t *testing.T) {
	const root = "../.."
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if path != root && strings.HasPrefix(entry.Name(), ".") {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if bytes.Contains(content[:min(len(content), 200)], []byte("DO NOT EDIT")) {
			return nil
		}
		if lines := bytes.Count(content, []byte("\n")); lines > longest {
			t.Errorf("%s has %d lines, more than %d: it holds more than one thing", path, lines, longest)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
