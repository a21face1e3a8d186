package attacktest

import (
	"maps"
	"testing"

	"treeline/internal/sandbox"
)

// reach are attacks that want out: to the host's files, processes, network and kernel.
func reach() []attack {
	given := map[string]string{"inputs/d/f": "given", "skills/d/f": "given", "workspace/w": "w"}
	return []attack{
		{program: "host_files", after: func(t *testing.T, s sandbox.Session, _ sandbox.Outcome) {
			tree, files := take(t, s)
			if len(files) != 0 || len(tree.Ignored) != 1 || tree.Ignored[0].Path != "link" {
				t.Errorf("it left %q and %v, want a link that is ignored", files, tree.Ignored)
			}
		}},
		{program: "proc"},
		{program: "environment"},
		{program: "descriptors"},
		{program: "sockets"},
		{program: "calls", says: "alive\nend\n"},
		{program: "abi"},
		{program: "rights"},
		{program: "writes"},
		{program: "inputs", put: given, after: func(t *testing.T, s sandbox.Session, _ sandbox.Outcome) {
			if _, files := take(t, s); !maps.Equal(files, map[string]string{"w": "w"}) {
				t.Errorf("it left %q", files)
			}
		}},
		{program: "signals"},
	}
}
