package torture

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/rs/zerolog"
)

func TestTortureBreaksNothing(t *testing.T) {
	for _, c := range []struct {
		name string
		seed uint64
	}{
		{"with the seed that it always has", 1},
		{"with a seed that it never had", rand.Uint64N(1_000_000_000) + 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			report, err := Run(t.Context(), Config{Seconds: 30, Seed: c.seed, Conversations: 30, CodeWorkers: 2, Log: zerolog.Nop()})
			if err != nil {
				t.Fatal(err)
			}
			tell(t, report)
		})
	}
}

func TestNothingIsLeftUnfinishedAfterManyKills(t *testing.T) {
	report, err := Run(t.Context(), Config{Seconds: 10, Seed: 20, Conversations: 20, CodeWorkers: 1, LeastFaults: 20, Log: zerolog.Nop(),
		Faults: []string{"dispatcher-kill", "fileworker-kill", "codeworker-kill", "postgres-crash", "nats-kill"}})
	if err != nil {
		t.Fatal(err)
	}
	tell(t, report)
}

func tell(t *testing.T, report Report) {
	t.Helper()
	var text strings.Builder
	if err := report.Text(&text); err != nil {
		t.Fatal(err)
	}
	t.Log(text.String())
	if len(report.Breaches) > 0 {
		t.Errorf("seed %d: %d breaches", report.Seed, len(report.Breaches))
	}
	if report.Calls.Stored == 0 || report.Told.Results == 0 || len(report.Faults) == 0 {
		t.Error("nothing was tortured")
	}
}
