package main

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// childrenInitialiseLittle sees that a sandbox's processes, which execute this binary anew for each run of code, do not pay
// for what they do not use.
func childrenInitialiseLittle(t *testing.T, folder string) {
	for name, all := range map[string]bool{"treeline-sandbox-init": false, "treeline-sandbox-launcher": false, "treeline": true} {
		cmd := exec.CommandContext(t.Context(), filepath.Join(folder, "treeline"), "--help")
		cmd.Args[0], cmd.Env = name, []string{"GODEBUG=inittrace=1"}
		var help, trace bytes.Buffer
		cmd.Stdout, cmd.Stderr = &help, &trace
		_ = cmd.Run() // a child that has no parent to talk to ends, one way or another
		if strings.Contains(help.String(), "Usage:") != all {
			t.Errorf("%s printed %q", name, help.String())
		}
		if !strings.Contains(trace.String(), "init runtime ") {
			t.Fatalf("%s tells nothing of what it initialises: %q", name, trace.String())
		}
		for _, heavy := range []string{"init net/http ", "init github.com/santhosh-tekuri/jsonschema/v6 ", "init github.com/nats-io/nats-server/v2/server "} {
			if strings.Contains(trace.String(), heavy) != all {
				t.Errorf("%s: %q is there: %v, want %v", name, heavy, !all, all)
			}
		}
	}
}
