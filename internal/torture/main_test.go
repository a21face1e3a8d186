package torture

import (
	"os"
	"testing"

	"treeline/internal/sandbox/local"
)

func TestMain(m *testing.M) {
	local.MaybeChild()
	MaybeChild()
	if os.Args[0] == toBeKilled {
		beKilled()
	}
	os.Exit(m.Run())
}

// folder is an empty folder that the database server's account can reach.
func folder(t *testing.T) string {
	t.Helper()
	f, err := NewFolder()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("kept for a look: %s", f)
			return
		}
		if err := os.RemoveAll(f); err != nil {
			t.Error(err)
		}
	})
	return f
}
