package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"

	"github.com/rs/zerolog"

	"treeline/internal/torture"
)

type tortureCommand struct {
	Seconds       int      `help:"How long calls are made and things are broken." default:"60"`
	Seed          uint64   `help:"Which calls and faults; 0 draws one, which is printed." default:"0"`
	Conversations int      `help:"How many conversations, each with a caller of its own." default:"50"`
	CodeWorkers   int      `help:"How many code workers; 0 runs no code." default:"2"`
	Faults        []string `help:"Only these kinds of fault, by the names in the report." placeholder:"KIND"`
	JSON          bool     `name:"json" help:"Print the report as JSON."`
}

// errBreach says that the report has what must not be.
var errBreach = errors.New("something was lost, or done that must not be: see the report")

// Run tortures a fleet of its own and prints what came of it.
func (c *tortureCommand) Run(ctx context.Context, out io.Writer, log zerolog.Logger) error {
	if c.Seed == 0 {
		c.Seed = rand.Uint64N(1_000_000_000) + 1
	}
	report, err := torture.Run(ctx, torture.Config{Seconds: c.Seconds, Seed: c.Seed, Conversations: c.Conversations,
		CodeWorkers: c.CodeWorkers, Faults: c.Faults, Log: log})
	if err != nil {
		return err
	}
	if err := c.print(out, report); err != nil {
		return fmt.Errorf("print the report: %w", err)
	}
	if len(report.Breaches) > 0 {
		return errBreach
	}
	return nil
}

func (c *tortureCommand) print(out io.Writer, report torture.Report) error {
	if !c.JSON {
		return report.Text(out)
	}
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	return e.Encode(report)
}
