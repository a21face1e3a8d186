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

// MaybeChild must be the first statement of every main, and of TestMain, whose binary uses this driver: where the
// process is one of the driver's own children it does that work and never returns.
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
