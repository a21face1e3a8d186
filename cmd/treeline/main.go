// Command treeline is for people: it runs the whole fleet over one data folder, looks at the machine, and talks to a fleet
// that runs.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"

	"treeline/internal/role"
	"treeline/internal/sandbox/local"
	"treeline/internal/torture"
)

type cli struct {
	role.Logging

	Up      upCommand      `cmd:"" help:"Run the whole fleet over one data folder."`
	Doctor  doctorCommand  `cmd:"" help:"Say what this machine has and lacks for up."`
	Call    callCommand    `cmd:"" help:"Call a tool of a fleet that runs, wait, and print the result."`
	Tail    tailCommand    `cmd:"" help:"Print results and progress as they come."`
	Bench   benchCommand   `cmd:"" help:"Measure, beside a limit or a peer in the same run."`
	Torture tortureCommand `cmd:"" help:"Break a fleet of its own in every way, and prove that nothing was lost."`
	Migrate migrateCommand `cmd:"" help:"Bring a database to the present schema."`
}

// exitNotOK is the exit code for a call whose result is there and is not ok.
const exitNotOK = 3

func main() {
	local.MaybeChild()
	torture.MaybeChild()
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// run is main, with the exit code for its result: 0 done, 1 it failed, 2 it was asked for something that cannot be, 3 the
// result of a call is not ok.
func run(args []string, out, errOut io.Writer) int {
	var c cli
	fail := func(code int, err error) int {
		fmt.Fprintln(errOut, "treeline:", err)
		return code
	}
	parser, err := newParser(&c)
	if err != nil {
		return fail(role.ExitUsage, err)
	}
	command, err := parser.Parse(args)
	if err != nil {
		return fail(role.ExitUsage, fmt.Errorf("%w (treeline --help lists what there is)", err))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	command.BindTo(ctx, (*context.Context)(nil))
	command.BindTo(out, (*io.Writer)(nil))
	command.Bind(c.Logger())
	err = command.Run()
	var setting *role.SettingError
	switch {
	case err == nil:
		return role.ExitDone
	case errors.As(err, &setting), errors.Is(err, errNoCredential):
		return fail(role.ExitUsage, err)
	case errors.Is(err, errNotOK):
		return fail(exitNotOK, err)
	}
	return fail(role.ExitFailed, err)
}

func newParser(c *cli) (*kong.Kong, error) {
	return kong.New(c, kong.Name("treeline"), kong.Description("Tool calls on a conversation's workspace, in order and exactly once."),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}), kong.ValueFormatter(role.HelpText))
}
