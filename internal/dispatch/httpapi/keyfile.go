package httpapi

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// KeyFile gives what the file at path holds, for ParseKeys. Where there is no file it makes one, readable to its owner
// alone, with a key of 256 random bits; of several processes that do so at once all get the same.
func KeyFile(path string) (string, error) {
	held, err := os.ReadFile(path)
	if err == nil {
		return string(held), nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("read the portal's key: %w", err)
	}
	var b [32]byte
	_, _ = rand.Read(b[:]) // never fails: crypto/rand ends the program instead
	key := "tlp_" + base64.RawURLEncoding.EncodeToString(b[:])
	// Written beside and linked into place, so that nobody reads half a key and nobody's key is replaced.
	f, err := os.CreateTemp(filepath.Dir(path), ".key-*") // 0600
	if err != nil {
		return "", fmt.Errorf("make the portal's key: %w", err)
	}
	defer os.Remove(f.Name())
	_, err = f.WriteString(key + "\n")
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return "", fmt.Errorf("write the portal's key: %w", err)
	}
	switch err := os.Link(f.Name(), path); {
	case errors.Is(err, fs.ErrExist):
		held, err := os.ReadFile(path)
		if err != nil {
			return "", fmt.Errorf("read the portal's key: %w", err)
		}
		return string(held), nil
	case err != nil:
		return "", fmt.Errorf("put the portal's key in place: %w", err)
	}
	return key, nil
}
