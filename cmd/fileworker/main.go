// Command fileworker does the calls that read and change files. Any number may run, over one database and one NATS.
package main

import (
	"os"

	"treeline/internal/role"
)

func main() {
	os.Exit(role.Execute("fileworker", "Does the calls that read and change files, until it is told to stop.", &role.FileWorkerProgram{}, os.Args[1:]))
}
