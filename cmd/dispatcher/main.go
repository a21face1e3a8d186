// Command dispatcher lets calls in over HTTP and NATS. Any number may run, over one database and one NATS.
package main

import (
	"os"

	"treeline/internal/role"
)

func main() {
	os.Exit(role.Execute("dispatcher", "Lets calls in over HTTP and NATS and answers with their results, until it is told to stop.", &role.DispatcherProgram{}, os.Args[1:]))
}
