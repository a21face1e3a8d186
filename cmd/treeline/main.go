// Command treeline is for people: it runs the whole fleet over one data folder, looks at the machine, and talks to a fleet
// that runs.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"
	"github.com/rs/zerolog"
)

type cli struct {
	LogLevel string `help:"Least level of what is logged to standard error: debug, info, warn or error." default:"info" enum:"debug,info,warn,error" env:"TREELINE_LOG_LEVEL"`

	Up      upCommand      `cmd:"" help:"Run the whole fleet over one data folder."`
	Bench   benchCommand   `cmd:"" help:"Measure, beside a limit or a peer in the same run."`
	Migrate migrateCommand `cmd:"" help:"Bring a database to the present schema."`
}

func main() { os.Exit(run(os.Args[1:])) }

// run is main, with the exit code for its result: 0 done, 1 it failed, 2 it was asked for something that does not exist.
func run(args []string) int {
	var c cli
	parser, err := kong.New(&c, kong.Name("treeline"), kong.Description("Tool calls on a conversation's workspace, in order and exactly once."),
		kong.UsageOnError(), kong.ConfigureHelp(kong.HelpOptions{Compact: true}))
	if err != nil {
		fmt.Fprintln(os.Stderr, "treeline:", err)
		return 2
	}
	command, err := parser.Parse(args)
	if err != nil {
		fmt.Fprintln(os.Stderr, "treeline:", err)
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	level, _ := zerolog.ParseLevel(c.LogLevel) // the parser has checked it
	log := zerolog.New(os.Stderr).Level(level).With().Timestamp().Logger()
	command.BindTo(ctx, (*context.Context)(nil))
	command.Bind(log)
	if err := command.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "treeline:", err)
		return 1
	}
	return 0
}
