package torture

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"treeline/internal/call"
)

const (
	appendedFile = "log.txt"
	// lastLine is where every caller inserts: a text that the file has once.
	lastLine = "end of the log"
	started  = "begin of the log\n" + lastLine + "\n"
)

// Way is how a caller sends its calls.
type Way int

// The ways in.
const (
	OverHTTP Way = iota
	OverNATS
	// Mixed has every other caller send over NATS, and look for its result there alone.
	Mixed
)

func (w Way) String() string { return [...]string{"HTTP", "NATS", "mixed"}[w] }

func (w Way) nats(caller int) bool { return w == OverNATS || (w == Mixed && caller%2 == 1) }

// Appending is many callers who each add one line to one file of one conversation, all at once.
type Appending struct {
	Client  *Client
	Monitor *Monitor
	// Conversation is made by Begin.
	Conversation string
	Callers      int
	Way          Way

	turn, token string
	mu          sync.Mutex
	results     map[string]call.Result
}

// Begin makes the conversation and the file.
func (a *Appending) Begin(ctx context.Context) error {
	a.results = map[string]call.Result{}
	if err := a.Client.PutConversation(ctx, a.Conversation); err != nil {
		return fmt.Errorf("make the conversation: %w", err)
	}
	var err error
	a.turn, a.token, err = a.Client.OpenTurn(ctx, a.Conversation, a.Conversation+"-t", []string{"edit_file", "write_file", "read_file"})
	if err != nil {
		return err
	}
	r := Request{Token: a.token, CallID: "first", Tool: "write_file", Arguments: mustJSON(map[string]any{"path": appendedFile, "content": started})}
	res, err := a.settle(ctx, r, false)
	if err != nil {
		return err
	}
	if res.Status != call.OK {
		return fmt.Errorf("write the file: %s %s", res.Status, res.Code)
	}
	return nil
}

// Run has every caller add its line, and returns once each has its result.
func (a *Appending) Run(ctx context.Context) error {
	errs := make([]error, a.Callers)
	var wg sync.WaitGroup
	for i := range a.Callers {
		wg.Go(func() {
			r := Request{Token: a.token, CallID: fmt.Sprintf("c%d", i), Tool: "edit_file", Arguments: mustJSON(map[string]any{
				"path":  appendedFile,
				"edits": []any{map[string]any{"find": lastLine, "replace": line(i) + lastLine}},
			})}
			res, err := a.settle(ctx, r, a.Way.nats(i))
			if err != nil {
				errs[i] = fmt.Errorf("caller %d: %w", i, err)
				return
			}
			a.mu.Lock()
			defer a.mu.Unlock()
			a.results[r.CallID] = res
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

func line(caller int) string { return fmt.Sprintf("caller %d was here\n", caller) }

// settle sends a call until it is accepted, and waits until its result is known: over NATS from the stream of results
// and from nowhere else.
func (a *Appending) settle(ctx context.Context, r Request, overNATS bool) (call.Result, error) {
	pause := 5 * time.Millisecond
	for {
		reply, err := a.send(ctx, r, overNATS)
		switch {
		case errors.Is(err, errUnsure), err == nil && !reply.Accepted && reply.Refusal == call.Busy:
			if !sleep(ctx, pause) {
				return call.Result{}, fmt.Errorf("call %s was not accepted: %w", r.CallID, ctx.Err())
			}
			pause = min(2*pause, 200*time.Millisecond)
		case err != nil:
			return call.Result{}, err
		case !reply.Accepted:
			return call.Result{}, fmt.Errorf("call %s was refused: %s", r.CallID, reply.Refusal)
		case overNATS:
			return a.Monitor.Await(ctx, call.Key{Conversation: a.Conversation, Turn: a.turn, Call: r.CallID})
		case reply.Result != nil:
			return *reply.Result, nil
		}
	}
}

func (a *Appending) send(ctx context.Context, r Request, overNATS bool) (Reply, error) {
	if !overNATS {
		return a.Client.SendHTTP(ctx, r, 2*time.Second)
	}
	replies, err := a.Client.SendNATS(ctx, r)
	if err != nil {
		return Reply{}, err
	}
	return replies[0], nil
}

// Check looks from outside at what became of it: one result and one line a caller, in the order of the results.
func (a *Appending) Check(ctx context.Context) error {
	if len(a.results) != a.Callers {
		return fmt.Errorf("%d of %d callers have a result", len(a.results), a.Callers)
	}
	bySeq := make([]string, a.Callers+2)
	for id, res := range a.results {
		if res.Status != call.OK {
			return fmt.Errorf("call %s: %s %s: %s", id, res.Status, res.Code, call.TextOf(res.Content))
		}
		if res.Seq < 2 || int(res.Seq) >= len(bySeq) || bySeq[res.Seq] != "" {
			return fmt.Errorf("call %s has the place %d in an order of %d, and %q is there", id, res.Seq, len(bySeq)-1, bySeq[res.Seq])
		}
		bySeq[res.Seq] = id
		if err := a.stored(ctx, id, res); err != nil {
			return err
		}
		k := call.Key{Conversation: a.Conversation, Turn: a.turn, Call: id}
		told, err := a.Monitor.Await(ctx, k)
		if err != nil {
			return err
		}
		if told.Seq != res.Seq || told.Status != res.Status {
			return fmt.Errorf("call %s was answered with seq %d %s and told as seq %d %s", id, res.Seq, res.Status, told.Seq, told.Status)
		}
	}
	want := strings.Builder{}
	want.WriteString("begin of the log\n")
	for _, id := range bySeq[2:] {
		var i int
		if _, err := fmt.Sscanf(id, "c%d", &i); err != nil {
			return fmt.Errorf("read the call id %q: %w", id, err)
		}
		want.WriteString(line(i))
	}
	want.WriteString(lastLine + "\n")
	got, err := a.Client.File(ctx, a.Conversation, appendedFile)
	if err != nil {
		return err
	}
	if !bytes.Equal(got, []byte(want.String())) {
		return fmt.Errorf("the file is not the callers' lines in the order of their places:\n%s\nand should be:\n%s", got, want.String())
	}
	return nil
}

// stored compares a result with the one that the ledger keeps.
func (a *Appending) stored(ctx context.Context, id string, res call.Result) error {
	for {
		reply, err := a.Client.Result(ctx, a.token, id)
		switch {
		case errors.Is(err, errUnsure) && sleep(ctx, 50*time.Millisecond):
			continue
		case err != nil:
			return err
		case reply.Result == nil:
			return fmt.Errorf("call %s has been answered and has no stored result: %+v", id, reply)
		}
		if got, want := string(mustJSON(reply.Result)), string(mustJSON(res)); got != want {
			return fmt.Errorf("call %s was answered with\n%s\nand is stored as\n%s", id, want, got)
		}
		return nil
	}
}

// mustJSON encodes what is made of strings, numbers and results, which cannot fail.
func mustJSON(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}
