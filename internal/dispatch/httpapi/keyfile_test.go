package httpapi_test

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"treeline/internal/dispatch/httpapi"
)

func TestAKeyIsMadeOnceAndForItsOwnerAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "portal-key")
	keys := make([]string, 8)
	var all sync.WaitGroup
	for i := range keys {
		all.Go(func() {
			key, err := httpapi.KeyFile(path)
			if err != nil {
				t.Error(err)
			}
			keys[i] = strings.TrimSpace(key)
		})
	}
	all.Wait()
	for _, key := range keys {
		if key != keys[0] || len(key) < 40 {
			t.Errorf("keys %q", keys)
			break
		}
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) != 1 {
		t.Errorf("%d files are left, %v", len(entries), err)
	}
	if err := os.WriteFile(path, []byte("mine\nnext\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if key, err := httpapi.KeyFile(path); key != "mine\nnext\n" || err != nil {
		t.Errorf("a key that is there: %q, %v", key, err)
	}
	if _, err := httpapi.KeyFile(filepath.Join(path, "x")); err == nil {
		t.Error("a key was made below a file")
	}
}
