// Package dispatchtest gives tests a dispatcher on a real database and a real queue, with a file worker beside it.
package dispatchtest

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"

	"treeline/internal/call"
	"treeline/internal/catalogue"
	"treeline/internal/devenv"
	"treeline/internal/devenv/devtest"
	"treeline/internal/dispatch"
	"treeline/internal/fileworker"
	"treeline/internal/ledger"
	"treeline/internal/queue"
	"treeline/internal/store"
	"treeline/internal/turn"
)

// Fleet is a dispatcher and what it stands on.
type Fleet struct {
	Dispatcher *dispatch.Dispatcher
	Ledger     *ledger.Ledger
	Queue      *queue.Queue
	Pool       *pgxpool.Pool
	// NATS is the server, which a test may stop, restart and wipe.
	NATS *devenv.NATS
	// Conn is a connection of the test's own to the same server.
	Conn *nats.Conn
	// DatabaseURL reaches the same database.
	DatabaseURL string

	ctx     context.Context
	teller  *ledger.Teller
	working sync.WaitGroup
}

// New makes a fleet without workers.
func New(t testing.TB) *Fleet {
	t.Helper()
	return On(t, devtest.Postgres(t, store.Migrate).URL)
}

// On makes a fleet without workers on a database of the test's own choosing.
func On(t testing.TB, databaseURL string) *Fleet {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	f := &Fleet{ctx: ctx, DatabaseURL: databaseURL}
	var err error
	f.Pool, err = store.Open(ctx, databaseURL, 8)
	must(t, err)
	server := devtest.NATS(t)
	f.NATS = server
	f.Conn, err = nats.Connect(server.URL())
	must(t, err)
	f.Queue, err = queue.Connect(ctx, queue.Options{URL: server.URL(), Name: "test"}, queue.DefaultConfig(), zerolog.Nop())
	must(t, err)
	f.Ledger = ledger.New(f.Pool, ledger.DefaultConfig())
	f.teller = ledger.NewTeller(f.Ledger, f.Queue, zerolog.Nop())
	f.working.Go(func() { _ = f.teller.Run(ctx) })
	tools, err := catalogue.Load()
	must(t, err)
	sweeper := ledger.NewSweeper(f.Ledger, f.Queue, f.teller, zerolog.Nop())
	immediate := map[string]dispatch.Immediate{catalogue.CalculateTool: four}
	f.Dispatcher = dispatch.New(f.Ledger, f.Queue, f.teller, sweeper, tools, immediate, zerolog.Nop())
	t.Cleanup(func() {
		cancel()
		f.working.Wait()
		f.Conn.Close()
		f.Queue.Close()
		f.Pool.Close()
	})
	return f
}

// four stands in for the calculator, which is not this way in's to test.
func four(context.Context, turn.Turn, any) (ledger.Outcome, error) {
	return ledger.Outcome{Status: call.OK, Content: []call.Content{call.Text("4")}}, nil
}

// Work starts a file worker, which ends with the test.
func (f *Fleet) Work(t testing.TB) {
	t.Helper()
	w := fileworker.New(f.Ledger, f.Queue, f.teller, fileworker.DefaultConfig(), zerolog.Nop())
	f.working.Go(func() { _ = w.Run(f.ctx, f.ctx.Done()) })
}

// Turn makes a conversation, if it is new, and opens a turn in it that was offered the tools.
func (f *Fleet) Turn(t testing.TB, conversation string, tools ...string) (turnID, token string) {
	t.Helper()
	_, err := f.Dispatcher.PutConversation(f.ctx, conversation)
	must(t, err)
	turnID, token, err = f.Dispatcher.OpenTurn(f.ctx, turn.Turn{Conversation: conversation, Tools: tools,
		Caller: turn.Caller{User: "ann", Department: "sales"}}, time.Hour)
	must(t, err)
	return turnID, token
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
