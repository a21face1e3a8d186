package dispatch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/rs/zerolog"

	"treeline/internal/call"
	"treeline/internal/catalogue"
	"treeline/internal/ledger"
	"treeline/internal/queue"
	"treeline/internal/turn"
	"treeline/internal/workspace"
)

// Immediate answers a call that touches no workspace. Arguments are the tool's typed ones. The error is a *call.Refusal
// or means that the system itself failed.
type Immediate func(ctx context.Context, t turn.Turn, arguments any) (ledger.Outcome, error)

// Dispatcher takes calls in. It keeps nothing: any number may run.
type Dispatcher struct {
	ledger    *ledger.Ledger
	queue     *queue.Queue
	teller    *ledger.Teller
	sweeper   *ledger.Sweeper
	catalogue *catalogue.Catalogue
	immediate map[string]Immediate
	turns     *lru.Cache[[32]byte, turn.Turn] // by the hash of the token; a turn's facts never change
	log       zerolog.Logger
}

// cachedTurns bounds the turns whose facts are kept in memory.
const cachedTurns = 10_000

// New makes a dispatcher.
func New(l *ledger.Ledger, q *queue.Queue, t *ledger.Teller, s *ledger.Sweeper, c *catalogue.Catalogue,
	immediate map[string]Immediate, log zerolog.Logger) *Dispatcher {
	turns, _ := lru.New[[32]byte, turn.Turn](cachedTurns) // fails only for a size that is not positive
	return &Dispatcher{ledger: l, queue: q, teller: t, sweeper: s, catalogue: c, immediate: immediate, turns: turns, log: log}
}

// Tools gives the tools that a turn was offered and that exist. A closed turn's token still reads them.
func (d *Dispatcher) Tools(ctx context.Context, token string) ([]catalogue.Tool, error) {
	t, err := d.turn(ctx, token)
	if err != nil {
		return nil, err
	}
	return d.catalogue.Offered(t.Tools), nil
}

func (d *Dispatcher) turn(ctx context.Context, token string) (ledger.TurnState, error) {
	t, known, err := d.ledger.TurnByToken(ctx, token)
	if err != nil {
		return t, err
	}
	if !known {
		return t, ErrUnknownToken
	}
	return t, nil
}

// facts gives what never changes of a token's turn. Whether the turn still takes calls, accepting them decides.
func (d *Dispatcher) facts(ctx context.Context, token string) (turn.Turn, error) {
	hash := turn.Hash(token)
	if t, known := d.turns.Get(hash); known {
		return t, nil
	}
	t, err := d.turn(ctx, token)
	if err != nil {
		return turn.Turn{}, err
	}
	d.turns.Add(hash, t.Turn)
	return t.Turn, nil
}

// Submit accepts one step, in order, all of its calls or none, and returns without waiting for them. A single call that
// is refused at the door is kept and told like any other result; a step with such a call stores none. The error is a
// *call.Refusal, ErrUnknownToken, or means that the system itself failed.
func (d *Dispatcher) Submit(ctx context.Context, token string, requests []Request) ([]Answer, error) {
	t, err := d.facts(ctx, token)
	if err != nil {
		return nil, err
	}
	calls, err := d.door(ctx, t, requests)
	if err != nil {
		return nil, err
	}
	answers, err := d.accept(ctx, t, calls)
	if err != nil {
		return nil, err
	}
	if len(answers) == 1 {
		if r := refusedAtDoor(answers[0]); r != nil {
			return nil, r
		}
	}
	return answers, nil
}

func refusedAtDoor(a Answer) *call.Refusal {
	if a.Result == nil || a.Result.Seq != 0 || a.Result.Status != call.Refused {
		return nil
	}
	return &call.Refusal{Code: a.Result.Code, Text: call.TextOf(a.Result.Content), CallID: a.CallID}
}

// Call accepts one call and waits for its result, at most for wait. A refusal comes as a result; of those of the moment
// nothing is kept. The error is ErrUnknownToken, or means that the system itself failed.
func (d *Dispatcher) Call(ctx context.Context, token string, r Request, wait time.Duration) (Answer, error) {
	t, err := d.facts(ctx, token)
	if err != nil {
		return Answer{}, err
	}
	calls, err := d.door(ctx, t, []Request{r})
	if err == nil {
		var a Answer
		if a, err = d.acceptAndWait(ctx, t, calls[0], wait); err == nil {
			return a, nil
		}
	}
	var refusal *call.Refusal
	if errors.As(err, &refusal) {
		return momentary(t, r, refusal), nil
	}
	return Answer{}, err
}

func (d *Dispatcher) acceptAndWait(ctx context.Context, t turn.Turn, c ledger.NewCall, wait time.Duration) (Answer, error) {
	key := call.Key{Conversation: t.Conversation, Turn: t.ID, Call: c.ID}
	if c.Done != nil || wait <= 0 {
		answers, err := d.accept(ctx, t, []ledger.NewCall{c})
		if err != nil {
			return Answer{}, err
		}
		return answers[0], nil
	}
	// Subscribed before the call is accepted, so that no result goes by unseen.
	w, err := d.await(key)
	if err != nil {
		return Answer{}, err
	}
	defer w.stop()
	accepted, err := d.ledger.AcceptLazily(ctx, t, c)
	if err != nil {
		return Answer{}, err
	}
	a := d.accepted(ctx, t, c.ID, accepted)
	if a.Result != nil {
		return a, nil
	}
	// A call that was known may have been told before the subscription began.
	w.look = a.Duplicate
	return d.wait(ctx, w, a, wait)
}

// accept writes calls to the ledger, publishes the head's event and tells what is done already.
func (d *Dispatcher) accept(ctx context.Context, t turn.Turn, calls []ledger.NewCall) ([]Answer, error) {
	accepted, err := d.ledger.Accept(ctx, t, calls)
	if err != nil {
		return nil, err
	}
	answers := make([]Answer, len(calls))
	for i, a := range accepted {
		answers[i] = d.accepted(ctx, t, calls[i].ID, a)
	}
	return answers, nil
}

// accepted publishes the event of an accepted call and tells a result that is there already.
func (d *Dispatcher) accepted(ctx context.Context, t turn.Turn, id string, a ledger.Accepted) Answer {
	if a.Event != nil {
		if err := d.queue.SendEvent(*a.Event); err != nil {
			d.log.Warn().Err(err).Str("conversation", t.Conversation).Str("turn", t.ID).Str("call", id).
				Msg("event not sent; the sweeper will")
		}
	}
	if a.Result != nil && !a.Duplicate {
		d.teller.TellSoon(ctx, call.Key{Conversation: t.Conversation, Turn: t.ID, Call: id}, a.Told)
	}
	return Answer{CallID: id, Seq: a.Seq, Result: a.Result, State: string(a.State), Duplicate: a.Duplicate}
}

// door asks the four questions of each call and checks what needs no workspace. A refusal of a single call becomes its
// answer; one of several refuses the step.
func (d *Dispatcher) door(ctx context.Context, t turn.Turn, requests []Request) ([]ledger.NewCall, error) {
	if len(requests) == 0 {
		return nil, call.Refuse(call.InvalidArguments, "The step has no calls: send at least one.")
	}
	calls := make([]ledger.NewCall, len(requests))
	seen := map[string]bool{}
	for i, r := range requests {
		if err := checkID(r.CallID, seen); err != nil {
			return nil, err
		}
		if len(r.Arguments) > workspace.DefaultLimits().MessageBytes {
			return nil, TooLarge(len(r.Arguments), r.CallID)
		}
		c, refusal, err := d.check(ctx, t, r)
		switch {
		case err != nil:
			return nil, err
		case refusal != nil && len(requests) > 1:
			refusal.CallID = r.CallID
			return nil, refusal
		case refusal != nil:
			o := ledger.RefusedOutcome(refusal)
			c.Done = &o
		}
		calls[i] = c
	}
	return calls, nil
}

func checkID(id string, seen map[string]bool) *call.Refusal {
	if !call.ValidID(id) {
		return call.Refuse(call.InvalidArguments, `The field callId must be 1 to 64 of the characters A-Z, a-z, 0-9, "_" and "-", `+
			"and %d bytes came that are not. For example: \"call-1\".", len(id))
	}
	if seen[id] {
		r := call.Refuse(call.CallIDReused, "The call id %q stands twice in this step. Nothing was done; give each call its own.", id)
		r.CallID = id
		return r
	}
	seen[id] = true
	return nil
}

// TooLarge refuses a message of more than the limit.
func TooLarge(bytes int, callID string) *call.Refusal {
	r := call.Refuse(call.TooLarge, "The call is %d bytes, and at most %d can be sent. Nothing was done. Write large content with "+
		"run_code, which can make a file of any size that the workspace holds, or send it in several smaller calls.",
		bytes, workspace.DefaultLimits().MessageBytes)
	r.CallID = callID
	return r
}

func (d *Dispatcher) check(ctx context.Context, t turn.Turn, r Request) (ledger.NewCall, *call.Refusal, error) {
	checked, refusal := d.catalogue.Check(r.Tool, r.Arguments)
	c := ledger.NewCall{ID: r.CallID, Tool: toolName(r.Tool), Kind: "unknown", Lane: string(catalogue.LaneNone),
		Arguments: checked.Arguments, Digest: checked.Digest, Paths: checked.Paths}
	tool, exists := d.catalogue.Tool(r.Tool)
	if !exists || tool.Portal || !t.Offers(r.Tool) {
		return c, call.Refuse(call.ToolNotOffered, "The tool %q is not offered in this turn.", toolName(r.Tool)), nil
	}
	c.Kind, c.Lane = tool.Kind, string(tool.Lane)
	if refusal != nil {
		return c, refusal, nil
	}
	if tool.Lane != catalogue.LaneNone {
		return c, nil, nil
	}
	answer, ok := d.immediate[tool.Name]
	if !ok {
		return c, nil, fmt.Errorf("nothing answers the tool %s", tool.Name)
	}
	o, err := answer(ctx, t, checked.Typed)
	if errors.As(err, &refusal) {
		return c, refusal, nil
	}
	if err != nil {
		return c, nil, fmt.Errorf("answer %s: %w", tool.Name, err)
	}
	c.Done = &o
	return c, nil, nil
}

// toolName makes any name safe to keep and to show: what is no identifier is cut and its odd characters replaced.
func toolName(name string) string {
	const most = 64
	out := strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == '\uFFFD' {
			return '?'
		}
		return r
	}, name)
	if runes := []rune(out); len(runes) > most {
		out = string(runes[:most])
	}
	return out
}

func refuseDeleted() *call.Refusal {
	return call.Refuse(call.ConversationDeleted,
		"This conversation was deleted, and its workspace with it. Nothing was done; no further call of this turn can work.")
}

// momentary is the answer to a call of which nothing is kept.
func momentary(t turn.Turn, r Request, refusal *call.Refusal) Answer {
	now := time.Now().UTC()
	replay := r.Arguments
	if !json.Valid(replay) {
		replay = json.RawMessage("{}")
	}
	return Answer{CallID: r.CallID, State: string(ledger.Done), Result: &call.Result{
		CallID: r.CallID, TurnID: t.ID, ConversationID: t.Conversation, Tool: toolName(r.Tool), Status: call.Refused,
		Code: refusal.Code, IsError: true, Content: []call.Content{call.Text(refusal.Text)}, Data: json.RawMessage("{}"),
		Changes: call.Changes{}.Normal(), ReplayArguments: replay, Attempt: 1, StartedAt: now, FinishedAt: now,
	}}
}
