package torture

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// fault is one way of breaking a fleet. It returns once what it broke is mended.
type fault struct {
	kind string
	// ofRole tells the faults of one process from those of servers and wires.
	ofRole bool
	strike func(ctx context.Context, r *rand.Rand) error
}

// strike breaks one thing after another until the time is up, roles and servers at the same time, and mends everything
// in the end.
func (t *torture) strike(ctx context.Context, until time.Time) error {
	var servers, roles []fault
	for _, f := range t.faults() {
		switch {
		case len(t.cfg.Faults) > 0 && !slices.Contains(t.cfg.Faults, f.kind):
		case f.ofRole:
			roles = append(roles, f)
		default:
			servers = append(servers, f)
		}
	}
	var wg sync.WaitGroup
	for i, faults := range [][]fault{servers, roles} {
		if len(faults) > 0 {
			wg.Go(func() { t.strikeWith(ctx, until, faults, rand.New(rand.NewPCG(t.cfg.Seed, uint64(i)<<32))) })
		}
	}
	wg.Wait()
	return t.rig.StartAll(ctx)
}

func (t *torture) strikeWith(ctx context.Context, until time.Time, faults []fault, r *rand.Rand) {
	order := r.Perm(len(faults)) // each kind once before any comes again
	for n := 0; sleep(ctx, time.Duration(100+r.IntN(600))*time.Millisecond) && (time.Now().Before(until) || !t.struck()); n++ {
		if n > 0 && n%len(faults) == 0 {
			order = r.Perm(len(faults))
		}
		f := faults[order[n%len(faults)]]
		t.fault(f.kind)
		t.cfg.Log.Info().Str("fault", f.kind).Msg("strike")
		once, cancel := context.WithTimeout(ctx, time.Minute)
		if err := f.strike(once, r); err != nil {
			t.breach("liveness", "", fmt.Sprintf("after the fault %s: %v", f.kind, err))
		}
		cancel()
	}
}

func (t *torture) faults() []fault {
	rig := t.rig
	list := []fault{
		{"postgres-restart", false, func(ctx context.Context, _ *rand.Rand) error { return rig.Postgres.Restart(ctx) }},
		{"postgres-crash", false, func(ctx context.Context, r *rand.Rand) error {
			if err := rig.Postgres.Kill(); err != nil {
				return err
			}
			sleep(ctx, time.Duration(r.IntN(1000))*time.Millisecond)
			return rig.Postgres.Start(ctx)
		}},
		{"nats-restart", false, func(ctx context.Context, _ *rand.Rand) error {
			return errors.Join(rig.NATS.Term(10*time.Second), rig.NATS.Start(ctx))
		}},
		{"nats-kill", false, func(ctx context.Context, r *rand.Rand) error {
			if err := rig.NATS.Kill(); err != nil {
				return err
			}
			sleep(ctx, time.Duration(r.IntN(1500))*time.Millisecond)
			return rig.NATS.Start(ctx)
		}},
		{"nats-wiped", false, func(ctx context.Context, _ *rand.Rand) error { return rig.WipeNATS(ctx) }},
		{"link-dropped", false, rig.link(Dropped)},
		{"link-slow", false, rig.link(Slow)},
		{"link-half-open", false, rig.link(HalfOpen)},
	}
	for _, role := range []struct {
		name      string
		processes []*Process
	}{{"dispatcher", rig.Dispatchers}, {"fileworker", rig.FileWorkers}, {"codeworker", rig.CodeWorkers}} {
		if len(role.processes) > 0 {
			list = append(list, rig.processFaults(role.name, role.processes)...)
		}
	}
	if rig.disk != nil {
		list = append(list, fault{"disk-full", false, rig.fillDisk})
	}
	return list
}

func (r *Rig) processFaults(name string, processes []*Process) []fault {
	pick := func(random *rand.Rand) *Process { return processes[random.IntN(len(processes))] }
	return []fault{
		{name + "-kill", true, func(ctx context.Context, random *rand.Rand) error {
			p := pick(random)
			if err := p.Kill(); err != nil {
				return err
			}
			sleep(ctx, time.Duration(random.IntN(800))*time.Millisecond)
			return p.Start(ctx)
		}},
		{name + "-term", true, func(ctx context.Context, random *rand.Rand) error {
			p := pick(random)
			return errors.Join(p.Term(r.Settings.Grace+5*time.Second), p.Start(ctx))
		}},
		{name + "-stopped", true, func(ctx context.Context, random *rand.Rand) error { // for longer than a lease and an AckWait
			p := pick(random)
			if err := p.Pause(); err != nil {
				return err
			}
			sleep(ctx, max(r.Settings.Lease, r.Settings.AckWait)+time.Duration(500+random.IntN(1500))*time.Millisecond)
			return p.Resume()
		}},
	}
}

// link makes one wire bad for a while: longer than a lease, or shorter.
func (r *Rig) link(state Link) func(context.Context, *rand.Rand) error {
	return func(ctx context.Context, random *rand.Rand) error {
		l := r.Links[random.IntN(len(r.Links))]
		l.Set(state)
		sleep(ctx, time.Duration(300+random.IntN(2*int(r.Settings.Lease/time.Millisecond)))*time.Millisecond)
		l.Set(Whole)
		return nil
	}
}

// fillDisk takes the database server's last free byte for a while.
func (r *Rig) fillDisk(ctx context.Context, random *rand.Rand) error {
	filler := filepath.Join(r.disk.path, "filler")
	if err := fill(filler); err != nil {
		return err
	}
	sleep(ctx, time.Duration(500+random.IntN(1500))*time.Millisecond)
	if err := os.Remove(filler); err != nil {
		return fmt.Errorf("free the disk: %w", err)
	}
	// The server may have given up, or be about to.
	for range 20 {
		if err := r.Postgres.Start(ctx); err != nil {
			return err
		}
		if !sleep(ctx, 50*time.Millisecond) {
			break
		}
	}
	return nil
}

// fill writes a file until no more can be written.
func fill(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("fill the disk: %w", err)
	}
	buf := make([]byte, 1<<20)
	for err == nil {
		_, err = f.Write(buf)
	}
	for err = nil; err == nil; {
		_, err = f.Write(buf[:4096])
	}
	return f.Close()
}
