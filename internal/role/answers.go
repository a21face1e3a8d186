package role

import (
	"context"
	"time"

	"treeline/internal/calculator"
	"treeline/internal/call"
	"treeline/internal/catalogue"
	"treeline/internal/dispatch"
	"treeline/internal/ledger"
	"treeline/internal/turn"
)

// readyWithin bounds the look at whether a role can work.
const readyWithin = 2 * time.Second

// answers are the tools that the dispatcher answers by itself.
func answers(*base) map[string]dispatch.Immediate {
	return map[string]dispatch.Immediate{
		"calculate": func(_ context.Context, _ turn.Turn, arguments any) (ledger.Outcome, error) {
			results := calculator.EvaluateAll(arguments.(catalogue.Calculate).Expressions)
			return ledger.Outcome{Status: call.OK, Data: map[string]any{"results": results}}, nil
		},
	}
}
