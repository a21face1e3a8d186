package torture

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"treeline/internal/call"
)

// quiet waits until everything is done and told, and notes how long that took.
func (t *torture) quiet(ctx context.Context, mended time.Time) error {
	for {
		unfinished, untold, err := t.rig.pending(ctx)
		if err != nil {
			return err
		}
		took := time.Since(mended)
		if unfinished == 0 && untold == 0 {
			t.report.RecoverySeconds = took.Seconds()
			return nil
		}
		if took > settleWithin {
			t.breach("liveness", "", fmt.Sprintf("%s after the last fault %d calls are not done and %d not told", took.Round(time.Second), unfinished, untold))
			return nil
		}
		if !sleep(ctx, 100*time.Millisecond) {
			return ctx.Err()
		}
	}
}

// check looks at everything from outside.
func (t *torture) check(ctx context.Context) error {
	rows, err := t.rig.rows(ctx)
	if err != nil {
		return err
	}
	t.caughtUp(ctx, rows)
	byConversation := map[string][]row{}
	for _, r := range rows {
		byConversation[r.Conversation] = append(byConversation[r.Conversation], r)
	}
	list, err := t.rig.counts(ctx)
	if err != nil {
		return err
	}
	own := map[string]counts{}
	for _, c := range list {
		own[c.ID] = c
	}
	t.report.Calls.Stored = len(rows)
	for _, d := range t.drivers {
		c := inspection{torture: t, driver: d, rows: byConversation[d.name], counts: own[d.name]}
		if err := c.inspect(ctx); err != nil {
			return err
		}
		delete(byConversation, d.name)
	}
	for _, name := range slices.Sorted(maps.Keys(byConversation)) {
		t.breach("isolation", name, fmt.Sprintf("%d calls are in a conversation that nobody made", len(byConversation[name])))
	}
	if err := t.checkCommon(ctx); err != nil {
		return err
	}
	if err := t.monitor.Err(); err != nil {
		t.breach("telling", "", err.Error())
	}
	return nil
}

// caughtUp gives the subscriber a moment to read what is in the stream.
func (t *torture) caughtUp(ctx context.Context, rows []row) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	for _, r := range rows {
		if r.Result == nil {
			continue // of a deleted conversation: its telling may be purged
		}
		if _, err := t.monitor.Await(ctx, r.key()); err != nil {
			return // reported with its conversation
		}
	}
}

// inspection is the look at one conversation.
type inspection struct {
	*torture
	driver *driver
	rows   []row
	counts counts

	acts map[call.Key]*act
}

func (c *inspection) breach(invariant, format string, args ...any) {
	c.torture.breach(invariant, c.driver.name, fmt.Sprintf(format, args...))
}

func (c *inspection) inspect(ctx context.Context) error {
	c.acts = map[call.Key]*act{}
	for _, a := range c.driver.all() {
		c.acts[a.key()] = a
		if a.accepted {
			c.report.Calls.Accepted++
		}
	}
	c.recognise()
	c.ledger()
	c.order()
	known := map[call.Key]bool{}
	for _, r := range c.rows {
		known[r.key()] = true
		c.row(r)
	}
	for _, a := range c.driver.all() {
		if a.accepted && !known[a.key()] {
			c.breach("durability", "call %s.%s was acknowledged and is not in the ledger", a.turn, a.CallID)
		}
	}
	m := c.replay()
	c.torture.common = append(c.torture.common, m.common...)
	return errors.Join(c.files(ctx, m), c.artifacts(ctx, m))
}

// ledger looks at the conversation's counts and at leases.
func (c *inspection) ledger() {
	if c.counts.Open != 0 {
		c.breach("liveness", "the conversation counts %d open calls at the end", c.counts.Open)
	}
	if c.counts.Bytes != c.counts.RealBytes || c.counts.Files != c.counts.RealFiles {
		c.breach("all-or-nothing", "the conversation counts %d bytes in %d files, and there are %d in %d", c.counts.Bytes, c.counts.Files,
			c.counts.RealBytes, c.counts.RealFiles)
	}
	if c.counts.AdvisoryLocked > 1 { // a sweep may be going on
		c.breach("lock", "%d advisory locks are held", c.counts.AdvisoryLocked)
	}
	if s := c.rig.Settings; c.counts.Files > s.WorkspaceFiles || c.counts.Bytes > s.WorkspaceBytes {
		c.breach("limits", "%d bytes in %d files are past the limits", c.counts.Bytes, c.counts.Files)
	}
}

// order looks at the places: each given once, none left out, and no call done before the one before it.
func (c *inspection) order() {
	next := int64(1)
	var finished, accepted time.Time
	for _, r := range c.rows {
		if r.Seq == 0 {
			continue
		}
		if r.Seq != next {
			c.breach("order", "the place %d follows the place %d", r.Seq, next-1)
		}
		next = r.Seq + 1
		if r.AcceptedAt.Before(accepted) {
			c.breach("order", "the call at %d was accepted before the one before it", r.Seq)
		}
		accepted = r.AcceptedAt
		if r.FinishedAt == nil || r.Code == string(call.Cancelled) || r.Code == string(call.ConversationDeleted) {
			continue // it may have ended while it waited
		}
		if r.FinishedAt.Before(finished) {
			c.breach("order", "the call at %d was done before one that comes before it", r.Seq)
		}
		finished = *r.FinishedAt
	}
	if next-1 != c.counts.LastSeq {
		c.breach("order", "the last place given is %d, and the last call is at %d", c.counts.LastSeq, next-1)
	}
}

// row compares one call of the ledger with what its caller and the subscriber learned.
func (c *inspection) row(r row) {
	if r.State != "done" || r.Leased {
		c.breach("liveness", "call %s is %s at the end (leased: %t)", r.key(), r.State, r.Leased)
		return
	}
	name := *r.Status
	if r.Code != "" {
		name += " " + r.Code
	}
	c.report.Results[name]++
	if r.Attempt > 1 {
		c.report.Calls.TakenOver++
	}
	a := c.acts[r.key()]
	if a == nil {
		c.breach("isolation", "the ledger has the call %s that nobody made", r.key())
		return
	}
	atDoor := r.Seq == 0 && slices.Contains(a.refusals, call.Code(r.Code))
	// A deletion has dropped its result. Who waited for that is told of the deletion; who sends the call again, since the
	// answer was lost, is told of that too, or after a restore that the turn is closed.
	dropped := r.Result == nil && (slices.Contains(a.refusals, call.ConversationDeleted) || a.lost && slices.Contains(a.refusals, call.TurnClosed))
	// A person's change that is refused has a place as well, and its answer does not tell it.
	refused := a.actor != "" && slices.Contains(a.refusals, call.Code(r.Code))
	if !a.accepted && !a.unsure && !atDoor && !dropped && !refused {
		c.breach("once", "call %s is in the ledger and its caller was told that it is not: %v", r.key(), a.refusals)
	}
	if a.seq > 0 && a.seq != r.Seq {
		c.breach("order", "call %s was told that its place is %d and has %d", r.key(), a.seq, r.Seq)
	}
	if r.Tool != a.Tool {
		c.breach("once", "call %s is stored as a call of %s", r.key(), r.Tool)
	}
	stored, err := r.result()
	if err != nil {
		c.breach("once", "%v", err)
		return
	}
	for _, res := range a.results {
		c.same(r, stored, res, "answered")
	}
	c.told(r, stored)
}

// same compares a result that was given out with the stored one.
func (c *inspection) same(r row, stored *call.Result, res call.Result, how string) {
	if string(res.Status) != *r.Status || string(res.Code) != r.Code || res.Seq != r.Seq {
		c.breach("once", "call %s was %s with seq %d %s %q and is stored as seq %d %s %q", r.key(), how, res.Seq, res.Status, res.Code, r.Seq, *r.Status, r.Code)
		return
	}
	if stored != nil && !bytes.Equal(mustJSON(stored), mustJSON(res)) {
		c.breach("once", "call %s was %s with %s and is stored as %s", r.key(), how, mustJSON(res), mustJSON(stored))
	}
}

func (c *inspection) told(r row, stored *call.Result) {
	told, was := c.monitor.Told(r.key())
	if !was {
		if stored != nil {
			c.breach("telling", "a subscriber that has only NATS was never told of %s", r.key())
		}
		return
	}
	c.report.Told.Results++
	if told.Times > 1 {
		c.report.Told.Again++
	}
	if stored != nil {
		c.same(r, stored, told.Result, "told")
		if told.Differs != nil {
			c.breach("once", "call %s was told in two ways: %s", r.key(), told.Differs)
		}
	}
}

// replay has the model do the calls in their order, and compares each outcome; it gives what the workspace should be.
func (c *inspection) replay() *model {
	m, generation := newModel(c.rig.Settings), int64(0)
	m.artifacts[c.driver.own.document()] = [][]byte{[]byte(c.driver.own.begin())}
	m.artifacts[c.driver.own.lent()] = [][]byte{[]byte(c.driver.own.begin())}
	m.artifacts[c.driver.own.private()] = [][]byte{[]byte(c.driver.own.begin())}
	states := map[int64]map[int64]map[string][]byte{}
	next := func(to int64) {
		if to != generation {
			states[generation] = m.states
			generation = to
			m.empty()
		}
	}
	for _, r := range c.rows {
		if r.Seq > 0 {
			next(r.Generation)
		}
		if a := c.acts[r.key()]; r.State == "done" && a != nil {
			c.done(m, a, r)
		}
		if r.Seq > 0 {
			m.did(r.Seq)
		}
	}
	next(c.counts.Generation)
	states[generation] = m.states
	c.looks(states)
	return m
}

// done does one call on the model, unless it ended without effect.
func (c *inspection) done(m *model, a *act, r row) {
	defer m.wrote(a.turn, a.deed.writes, call.Status(*r.Status))
	switch code := call.Code(r.Code); code {
	case call.ToolNotOffered:
		if a.Tool != "no_such_tool" {
			c.breach("answers", "call %s of %s was refused with %s", r.key(), a.Tool, code)
		}
		return
	case call.Cancelled:
		if !a.cancel {
			c.breach("once", "call %s was cancelled and nobody asked for that", r.key())
		}
		return
	case call.ConversationDeleted:
		if r.Generation == c.counts.Generation {
			c.breach("once", "call %s ended as of a deleted conversation, and there was no deletion", r.key())
		}
		return
	case call.WorkerLost:
		if r.Attempt < 3 {
			c.breach("liveness", "call %s was given up after %d attempts", r.key(), r.Attempt)
		}
		return
	}
	stored, err := r.result()
	if err == nil && stored != nil && a.deed.mayNotBegin && call.Code(r.Code) == call.Timeout && untouched(*stored) {
		return // on a machine this busy its time was up before its first line
	}
	m.doing = r.key().String()
	v := a.deed.apply(m, occasion{turn: a.turn, from: a.made, to: *r.FinishedAt, status: call.Status(*r.Status), result: stored})
	if string(v.status) != *r.Status || !slices.Contains(v.codes, call.Code(r.Code)) {
		c.breach("order", "call %s at %d ended as %s %q, and done in order it ends as %s %v", r.key(), r.Seq, *r.Status, r.Code, v.status, v.codes)
		return
	}
	if put := a.Tool == "portal_put" && a.accepted && a.status != http.StatusAccepted; put && (len(v.created) > 0) != (a.status == http.StatusCreated) {
		c.breach("answers", "the change %s was answered with %d, and done in order it creates %v", r.key(), a.status, v.created)
	}
	if err != nil || stored == nil {
		return
	}
	want := call.Changes{Created: v.created, Modified: v.modified, Deleted: v.deleted}.Normal()
	if !bytes.Equal(mustJSON(want), mustJSON(stored.Changes)) {
		c.breach("all-or-nothing", "call %s at %d changed %s, and done in order it changes %s", r.key(), r.Seq, mustJSON(stored.Changes), mustJSON(want))
	}
	if v.check != nil {
		if err := v.check(*stored); err != nil {
			c.breach("order", "call %s at %d: %v", r.key(), r.Seq, err)
		}
	}
}

// files compares the workspace, as the portal gives it, with the model's.
func (c *inspection) files(ctx context.Context, m *model) error {
	var listed struct {
		Files []struct{ Path string }
	}
	status, err := c.client.portal(ctx, http.MethodGet, "/v1/conversations/"+c.driver.name+"/files", nil, &listed)
	if err != nil || status != http.StatusOK {
		return fmt.Errorf("list the files of %s: status %d: %w", c.driver.name, status, err)
	}
	var names []string
	for _, f := range listed.Files {
		names = append(names, f.Path)
	}
	if want := slices.Sorted(maps.Keys(m.files)); !slices.Equal(names, want) {
		c.breach("all-or-nothing", "the workspace has the files %v, and done in order it has %v", names, want)
		return nil
	}
	for _, path := range names {
		got, err := c.client.File(ctx, c.driver.name, path)
		if err != nil {
			return err
		}
		if !bytes.Equal(got, m.files[path]) {
			c.breach("order", "%s is\n%s\nand done in order it is\n%s", path, got, m.files[path])
		}
	}
	return nil
}
