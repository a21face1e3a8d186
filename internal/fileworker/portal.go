package fileworker

import (
	"context"
	"encoding/hex"
	"fmt"

	"treeline/internal/call"
	"treeline/internal/catalogue"
	"treeline/internal/ledger"
	"treeline/internal/store"
	"treeline/internal/workspace"
)

// portalPut puts a person's upload in place. Its bytes are staged in the database; limits and names are those of any
// write, the guards are not.
func (w *Worker) portalPut(ctx context.Context, c *job) (ledger.Outcome, error) {
	a := c.arguments.(catalogue.PortalPut)
	if refusal := c.tree.CheckNames([]string{a.Path}); refusal != nil {
		return ledger.Outcome{}, refusal
	}
	if refusal := w.limits.CheckRoom(c.tree.Room(), c.tree.With(map[string]int64{a.Path: a.Bytes})); refusal != nil {
		return ledger.Outcome{}, refusal
	}
	if err := c.memory.take(ctx, 2*a.Bytes); err != nil { // an upload is measured in memory, which grows as it comes
		return ledger.Outcome{}, err
	}
	content, err := store.StagedBytes(ctx, w.Ledger.Queries(), a.Staged)
	if err != nil {
		return ledger.Outcome{}, err
	}
	after := workspace.NewEntry(a.Path, content, c.Seq)
	if hex.EncodeToString(after.SHA256[:]) != a.SHA256 || after.Bytes != a.Bytes {
		return ledger.FailedOutcome(call.Internal, "The uploaded bytes are not there any more. Nothing was changed; upload the file again."), nil
	}
	ch := ledger.Change{Path: a.Path, After: &after, Staged: a.Staged, MIMEType: workspace.MIMEType(a.Path, content)}
	if before, there := c.tree.Get(a.Path); there {
		ch.Before = &before
	}
	o := ok(fmt.Sprintf("Uploaded %s: %s.", a.Path, sizeOf(after)), changeData{Revisions: map[string]int64{a.Path: c.Seq}})
	o.Changes = []ledger.Change{ch}
	return o, nil
}

// portalDelete removes one file for a person.
func (w *Worker) portalDelete(_ context.Context, c *job) (ledger.Outcome, error) {
	a := c.arguments.(catalogue.PortalDelete)
	before, refusal := c.tree.Find(a.Path)
	if refusal != nil {
		return ledger.Outcome{}, refusal
	}
	o := ok(fmt.Sprintf("Deleted %s.", a.Path), changeData{Revisions: map[string]int64{}})
	o.Changes = []ledger.Change{{Path: a.Path, Before: &before}}
	return o, nil
}
