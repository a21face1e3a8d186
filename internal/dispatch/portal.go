package dispatch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"treeline/internal/call"
	"treeline/internal/ledger"
	"treeline/internal/turn"
)

// ErrNotDone says that a portal call was accepted and is not done within its time; it still will be.
var ErrNotDone = errors.New("accepted, and not done yet")

// Portal makes a person's change of a workspace: a call in the conversation's portal turn, in the same order as all
// others. A refusal comes as a result. The error is ledger.ErrNotThere, ErrNotDone, or means that the system failed.
func (d *Dispatcher) Portal(ctx context.Context, r PortalRequest) (call.Result, error) {
	t, err := d.ledger.PortalTurn(ctx, r.Conversation)
	req := Request{CallID: uuid.NewString(), Tool: r.Tool}
	if err != nil {
		return refusedOr(t, req, err)
	}
	if req.Arguments, err = json.Marshal(r.Arguments); err != nil {
		return call.Result{}, fmt.Errorf("encode the portal's call: %w", err)
	}
	tool, ok := d.catalogue.Tool(r.Tool)
	if !ok || !tool.Portal {
		return call.Result{}, fmt.Errorf("%q is no call of the portal", r.Tool)
	}
	checked, refusal := d.catalogue.Check(r.Tool, req.Arguments)
	if refusal != nil {
		return *momentary(t, req, refusal).Result, nil
	}
	c := ledger.NewCall{ID: req.CallID, Tool: r.Tool, Kind: tool.Kind, Lane: string(tool.Lane), Actor: r.Actor,
		Arguments: checked.Arguments, Digest: checked.Digest, Paths: checked.Paths}
	a, err := d.acceptAndWait(ctx, t, c, r.Wait)
	if err != nil {
		return refusedOr(t, req, err)
	}
	if a.Result == nil {
		return call.Result{Seq: a.Seq}, ErrNotDone
	}
	return *a.Result, nil
}

func refusedOr(t turn.Turn, r Request, err error) (call.Result, error) {
	var refusal *call.Refusal
	if errors.As(err, &refusal) {
		return *momentary(t, r, refusal).Result, nil
	}
	return call.Result{}, err
}

// PutConversation makes a conversation, or leaves one as it is; it reports whether it made one.
func (d *Dispatcher) PutConversation(ctx context.Context, id string) (bool, error) {
	return d.ledger.PutConversation(ctx, id)
}

// DeleteConversation removes a conversation's workspace, stops its run, and tells what was unfinished.
func (d *Dispatcher) DeleteConversation(ctx context.Context, id string) error {
	deletion, err := d.ledger.Delete(ctx, id)
	if err != nil {
		return err
	}
	for _, k := range deletion.Ended {
		if err := d.queue.PublishCancel(k); err != nil {
			d.log.Warn().Err(err).Str("conversation", id).Msg("stopping a run not pushed; a heartbeat will tell")
		}
	}
	// The deletion stands. What follows is repeated by the sweeper until it is done.
	if err := d.sweeper.Purge(ctx, id); err != nil {
		d.log.Warn().Err(err).Str("conversation", id).Msg("results not purged yet; the sweeper will")
		return nil
	}
	for _, k := range deletion.Ended {
		result, _, err := d.ledger.Retell(ctx, k)
		if err != nil || result == nil {
			continue // the sweeper tells it
		}
		d.teller.TellSoon(ctx, k, result)
	}
	return nil
}

// RestoreConversation opens a deleted conversation again, with an empty workspace.
func (d *Dispatcher) RestoreConversation(ctx context.Context, id string) error {
	return d.ledger.Restore(ctx, id)
}

// OpenTurn opens a turn and gives its token, which is not kept. A turn id is made up where t has none; a turn without an
// expiry does not expire.
func (d *Dispatcher) OpenTurn(ctx context.Context, t turn.Turn, expiresIn time.Duration) (turnID, token string, err error) {
	if t.ID == "" {
		t.ID = "t-" + uuid.NewString()
	}
	if expiresIn > 0 {
		at := time.Now().Add(expiresIn).UTC()
		t.ExpiresAt = &at
	}
	token, hash := turn.NewToken()
	if err := d.ledger.OpenTurn(ctx, t, hash); err != nil {
		return "", "", err
	}
	return t.ID, token, nil
}

// CloseTurn closes a turn for new calls; what it accepted still runs.
func (d *Dispatcher) CloseTurn(ctx context.Context, id string) error {
	return d.ledger.CloseTurn(ctx, id)
}
