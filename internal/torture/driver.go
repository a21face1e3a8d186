package torture

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"treeline/internal/call"
)

// offered are the tools of a turn that has nothing beside its workspace; allTools are all that there are.
var offered = []string{"list_files", "read_file", "search_files", "write_file", "edit_file", "delete_file", "move_file", "run_code", "calculate"}

var allTools = append([]string{"save_artifact", "edit_artifact", "load_skill", "read_result"}, offered...)

// driver is the caller of one conversation.
type driver struct {
	*history
	run    *torture
	name   string
	random *rand.Rand
	deeds  deeds
	own    *belongings

	turn, token string
	turns, n    int
	gen         int
	persons     int // versions that the portal has put of its own artifact
	wg          sync.WaitGroup
}

func (t *torture) newDriver(i int) *driver {
	r := rand.New(rand.NewPCG(t.cfg.Seed, uint64(i)+1))
	d := &driver{history: &history{}, run: t, name: fmt.Sprintf("k%d", i), random: r}
	d.own = &belongings{name: d.name, known: d.known}
	d.deeds = deeds{random: r, code: t.cfg.CodeWorkers > 0, own: d.own}
	return d
}

// drive makes calls until loading ends, then returns once each has been answered or ctx ends.
func (d *driver) drive(ctx, loading context.Context) error {
	defer d.wg.Wait()
	if err := d.run.client.PutConversation(ctx, d.name); err != nil {
		return err
	}
	if err := d.own.put(ctx, d.run.client); err != nil {
		return err
	}
	if err := d.newTurn(ctx); err != nil {
		return err
	}
	for loading.Err() == nil {
		if err := d.step(ctx); err != nil {
			return fmt.Errorf("conversation %s: %w", d.name, err)
		}
		sleep(loading, time.Duration(d.random.IntN(80))*time.Millisecond)
	}
	return nil
}

func (d *driver) newTurn(ctx context.Context) (err error) {
	d.turns++
	d.turn, d.token, err = d.run.client.openTurn(ctx, d.name, d.own.turn(fmt.Sprintf("%s-t%d", d.name, d.turns)))
	return err
}

func (d *driver) step(ctx context.Context) error {
	switch n := d.random.IntN(125); {
	case n >= 104:
		return d.person(ctx)
	case n >= 100:
		return d.arrange(ctx)
	case n < 45:
		d.settle(ctx, d.act(), d.random.IntN(4) == 0)
	case n < 62: // several at once, without waiting for them
		for range 2 + d.random.IntN(8) {
			a, overNATS := d.act(), d.random.IntN(2) == 0
			d.wg.Go(func() { d.settle(ctx, a, overNATS) })
		}
	case n < 72:
		acts := make([]*act, 2+d.random.IntN(4))
		for i := range acts {
			acts[i] = d.act()
		}
		d.settleStep(ctx, acts)
	case n < 82:
		d.again(ctx)
	case n < 86:
		d.reuse(ctx)
	case n < 93:
		d.cancel(ctx)
	case n < 95:
		a := d.act()
		a.Tool, a.deed.writes = "no_such_tool", nil
		d.settle(ctx, a, d.random.IntN(2) == 0)
	case n < 98:
		if err := d.run.client.CloseTurn(ctx, d.turn); err != nil {
			return err
		}
		return d.newTurn(ctx)
	case n == 98:
		return d.deleteAndRestore(ctx)
	}
	return nil
}

// arrange changes what the turns may reach beside the workspace.
func (d *driver) arrange(ctx context.Context) error {
	c := d.run.client
	switch d.random.IntN(3) {
	case 0:
		return d.own.lend(ctx, c, []string{mayNothing, mayRead, mayChange, mayChange}[d.random.IntN(4)])
	case 1:
		return d.own.teach(ctx, c)
	}
	d.persons++
	n, err := c.PutArtifact(ctx, d.own.person(), asker, d.own.version(d.persons))
	if err == nil && n != d.persons {
		d.run.breach("once", d.name, fmt.Sprintf("version %d of the artifact %s was put as version %d", d.persons, d.own.person(), n))
	}
	return err
}

// known picks a result of the present generation that its caller has, whose text is whole there.
func (d *driver) known() (ref, text string) {
	acts := d.all()
	for range 10 {
		if len(acts) == 0 {
			break
		}
		if ref, text := acts[d.random.IntN(len(acts))].whole(d.gen); ref != "" {
			return ref, text
		}
	}
	return "", ""
}

// act makes a new call; it is in the history before it is sent.
func (d *driver) act() *act { return d.actOf(func(deed) bool { return true }) }

// actOf makes a new call of a kind that is wanted.
func (d *driver) actOf(wanted func(deed) bool) *act {
	d.n++
	id := fmt.Sprintf("c%d", d.n)
	deed := d.deeds.next(d.name + "." + id)
	for !wanted(deed) {
		deed = d.deeds.next(d.name + "." + id)
	}
	a := &act{Request: Request{Token: d.token, CallID: id, Tool: deed.tool, Arguments: mustJSON(deed.args)}, deed: deed,
		conversation: d.name, turn: d.turn, generation: d.gen, made: time.Now()}
	d.add(a)
	d.run.count(&d.run.report.Calls.Made)
	return a
}

// settle sends a call, again and again under its one id, until there is a certain answer; then it waits a while for the
// result.
func (d *driver) settle(ctx context.Context, a *act, overNATS bool) {
	a.way = "HTTP"
	if overNATS {
		a.way = "NATS"
	}
	sure := true
	for pause := 10 * time.Millisecond; ; pause = min(2*pause, 500*time.Millisecond) {
		reply, err := d.send(ctx, a, overNATS)
		switch {
		case errors.Is(err, errUnsure):
			sure = false
			d.run.count(&d.run.report.Calls.SentAgain)
		case err != nil:
			d.run.breach("answers", d.name, fmt.Sprintf("call %s: %v", a.CallID, err))
			a.gaveUp()
			return
		case reply.Refusal == call.Busy:
			a.note(reply)
			d.run.count(&d.run.report.Calls.Busy)
		case reply.Accepted:
			d.await(ctx, a)
			return
		default:
			a.note(reply)
			if !sure {
				a.sentBefore()
			}
			return
		}
		if !sleep(ctx, pause) {
			a.gaveUp()
			return
		}
	}
}

func (d *driver) send(ctx context.Context, a *act, overNATS bool) (Reply, error) {
	var reply Reply
	var err error
	if overNATS {
		var replies []Reply
		if replies, err = d.run.client.SendNATS(ctx, a.Request); err == nil {
			reply = replies[0]
		}
	} else {
		reply, err = d.run.client.SendHTTP(ctx, a.Request, time.Duration(a.CallID[len(a.CallID)-1]%3)*time.Second)
	}
	if err == nil && reply.Accepted {
		a.note(reply)
	}
	return reply, err
}

// settleStep sends several calls as one step, all accepted or none.
func (d *driver) settleStep(ctx context.Context, acts []*act) {
	requests := make([]Request, len(acts))
	for i, a := range acts {
		a.way, requests[i] = "NATS step", a.Request
	}
	sure := true
	for pause := 10 * time.Millisecond; ; pause = min(2*pause, 500*time.Millisecond) {
		replies, err := d.run.client.SendNATS(ctx, requests...)
		switch {
		case errors.Is(err, errUnsure):
			sure = false
		case err != nil:
			d.run.breach("answers", d.name, fmt.Sprintf("step from %s: %v", acts[0].CallID, err))
			for _, a := range acts {
				a.gaveUp()
			}
			return
		case replies[0].Refusal == call.Busy:
			d.run.count(&d.run.report.Calls.Busy)
		default:
			d.settled(ctx, acts, replies, sure)
			return
		}
		if !sleep(ctx, pause) {
			for _, a := range acts {
				a.gaveUp()
			}
			return
		}
	}
}

func (d *driver) settled(ctx context.Context, acts []*act, replies []Reply, sure bool) {
	last := int64(0)
	for i, a := range acts {
		a.note(replies[i])
		if !replies[i].Accepted && !sure {
			a.sentBefore()
		}
		if seq := replies[i].Seq; seq > 0 {
			if last > 0 && seq != last+1 {
				d.run.breach("order", d.name, fmt.Sprintf("a step from %s was given the places %d and %d, which do not follow", acts[0].CallID, last, seq))
			}
			last = seq
		}
	}
	d.await(ctx, acts[len(acts)-1])
}

// await asks for the result of an accepted call until it is there, or for a while: what comes later is found in the end.
func (d *driver) await(ctx context.Context, a *act) {
	for range 20 {
		a.mu.Lock()
		known := len(a.results) > 0
		a.mu.Unlock()
		if known || ctx.Err() != nil {
			return
		}
		reply, err := d.run.client.Result(ctx, a.Token, a.CallID)
		switch {
		case errors.Is(err, errUnsure):
		case err != nil:
			d.run.breach("answers", d.name, fmt.Sprintf("result of call %s: %v", a.CallID, err))
			return
		case reply.Result != nil:
			a.note(reply)
			return
		case reply.Refusal != "":
			return // its conversation is deleted
		}
		sleep(ctx, 100*time.Millisecond)
	}
}

// again sends a call of this turn once more, as it was.
func (d *driver) again(ctx context.Context) {
	if a := d.earlier(); a != nil {
		d.run.count(&d.run.report.Calls.Duplicates)
		d.settle(ctx, a, d.random.IntN(2) == 0)
	}
}

// earlier picks a call of the present turn.
func (d *driver) earlier() *act {
	var own []*act
	for _, a := range d.all() {
		if a.turn == d.turn {
			own = append(own, a)
		}
	}
	if len(own) == 0 {
		return nil
	}
	return own[d.random.IntN(len(own))]
}

// reuse sends another call under an id that was accepted for one.
func (d *driver) reuse(ctx context.Context) {
	a := d.earlier()
	if a == nil {
		return
	}
	a.mu.Lock()
	accepted := a.accepted
	a.mu.Unlock()
	if !accepted {
		return
	}
	other := Request{Token: a.Token, CallID: a.CallID, Tool: "write_file", Arguments: mustJSON(newFile{"reused.txt", "must not be"})}
	d.run.count(&d.run.report.Calls.Reuses)
	reply, err := d.run.client.SendHTTP(ctx, other, 0)
	if err == nil && reply.Refusal != call.CallIDReused && reply.Refusal != call.ConversationDeleted {
		d.run.breach("once", d.name, fmt.Sprintf("the id of call %s.%s was taken again for another: %+v", a.turn, a.CallID, reply))
	}
}

// cancel sends a call and asks for its end a moment later.
func (d *driver) cancel(ctx context.Context) {
	// Not the writing of the long file, whose failing guards its removal from when it ends, which is before its place.
	a := d.actOf(func(x deed) bool { return !slices.Contains(x.writes, longFile) })
	after := time.Duration(d.random.IntN(400)) * time.Millisecond
	d.wg.Go(func() { d.settle(ctx, a, false) })
	d.wg.Go(func() {
		sleep(ctx, after)
		a.askedToCancel()
		d.run.count(&d.run.report.Calls.Cancels)
		if err := d.run.client.Cancel(ctx, a.Token, a.CallID); err != nil && !errors.Is(err, errUnsure) {
			d.run.breach("answers", d.name, fmt.Sprintf("cancel call %s: %v", a.CallID, err))
		}
	})
}

// deleteAndRestore deletes the conversation under whatever is under way, and opens it again empty.
func (d *driver) deleteAndRestore(ctx context.Context) error {
	d.run.count(&d.run.report.Calls.Deletions)
	if err := d.run.client.DeleteConversation(ctx, d.name); err != nil {
		return err
	}
	if err := d.run.client.RestoreConversation(ctx, d.name); err != nil {
		return err
	}
	d.gen++
	if err := d.own.putResults(ctx, d.run.client); err != nil {
		return err
	}
	return d.newTurn(ctx)
}
