// Command codeworker runs the code of run_code calls, each in a sandbox of its own. Any number may run, over one database
// and one NATS.
package main

import (
	"os"

	"treeline/internal/role"
	"treeline/internal/sandbox/local"
)

func main() {
	local.MaybeChild()
	os.Exit(role.Execute("codeworker", "Runs the code of calls in sandboxes, until it is told to stop.", &role.CodeWorkerProgram{}, os.Args[1:]))
}
