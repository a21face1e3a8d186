package local

import (
	"os"
)

// The names under which this binary is executed again: one launcher a driver, one init a session.
const (
	launcherName = "treeline-sandbox-launcher"
	initName     = "treeline-sandbox-init"
)

// channelFD is the descriptor on which a child finds its channel.
const channelFD = 3

// init does the work of a child before most of the program's packages are initialised, on which it would spend more than on
// all that it does until it is ready. Go initialises packages in the order of their paths, each as soon as all that it imports
// is; this one imports so little that it comes before net, and so before servers, drivers and schemas, none of which a child
// needs. What it does need is there, and a child never gets to the rest.
func init() { MaybeChild() }

// MaybeChild does the driver's work and never returns where the process is one of its own children. That happens as soon as
// the package is initialised. A main whose binary uses this driver, and TestMain, begins with it all the same: it says to who
// reads it that the binary executes itself, and holds whatever order packages are initialised in.
func MaybeChild() {
	if len(os.Args) == 0 {
		return
	}
	switch os.Args[0] {
	case launcherName:
		os.Exit(launcherMain())
	case initName:
		os.Exit(initMain())
	}
}
