package torture

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"testing"
	"time"
)

// moments is how often each fault strikes, each time at another moment of a load.
const moments = 20

func newTestRig(t *testing.T, cfg RigConfig) *Rig {
	t.Helper()
	cfg.Folder = folder(t)
	if cfg.Settings == (Settings{}) {
		cfg.Settings = QuickSettings()
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r, err := NewRig(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// tortured is what both kinds of fleet give a test.
type tortured interface {
	Client() (*Client, error)
	Monitor() (*Monitor, error)
}

func clients(t *testing.T, f tortured) (*Client, *Monitor) {
	t.Helper()
	c, err := f.Client()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	m, err := f.Monitor()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return c, m
}

func TestTwoHundredCallersAtOneFile(t *testing.T) {
	r := newTestRig(t, RigConfig{Dispatchers: 2, FileWorkers: 2})
	c, m := clients(t, r)
	for _, way := range []Way{OverHTTP, OverNATS, Mixed} {
		t.Run(way.String(), func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			a := &Appending{Client: c, Monitor: m, Conversation: fmt.Sprintf("two-hundred-%s", way), Callers: 200, Way: way}
			if err := errors.Join(a.Begin(ctx), a.Run(ctx), a.Check(ctx)); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// strike runs the load again and again, each time with the fault at another moment of it.
func strike(t *testing.T, c *Client, m *Monitor, fault func(ctx context.Context, random *rand.Rand) error) {
	t.Helper()
	h := fnv.New64a()
	_, _ = h.Write([]byte(t.Name()))
	for trial := range uint64(moments) {
		random := rand.New(rand.NewPCG(h.Sum64(), trial))
		after := time.Duration(random.IntN(120)) * time.Millisecond
		t.Logf("seed %d,%d: after %s", h.Sum64(), trial, after)
		ctx, cancel := context.WithTimeout(t.Context(), 40*time.Second)
		a := &Appending{Client: c, Monitor: m, Conversation: fmt.Sprintf("k%d", trial), Callers: 40, Way: Mixed}
		if err := a.Begin(ctx); err != nil {
			t.Fatal(err)
		}
		loaded := make(chan error, 1)
		go func() { loaded <- a.Run(ctx) }()
		sleep(ctx, after)
		err := errors.Join(fault(ctx, random), <-loaded)
		if err == nil {
			err = a.Check(ctx)
		}
		cancel()
		if err != nil {
			t.Fatalf("seed %d,%d: %v", h.Sum64(), trial, err)
		}
	}
}

func TestTheWholeFleetIsKilledUnderLoad(t *testing.T) {
	t.Parallel()
	u := startUp(t)
	c, m := clients(t, u)
	strike(t, c, m, func(ctx context.Context, _ *rand.Rand) error { return u.KillAndStart(ctx) })
}

func TestPostgresAloneIsKilledUnderLoad(t *testing.T) {
	t.Parallel()
	u := startUp(t)
	c, m := clients(t, u)
	strike(t, c, m, func(context.Context, *rand.Rand) error { return u.KillPostgres() })
}

func startUp(t *testing.T) *Up {
	t.Helper()
	f := folder(t)
	u, err := NewUp(f+"/data", f+"/up.log", 2, QuickSettings())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	t.Cleanup(func() {
		if err := u.Term(20 * time.Second); err != nil {
			t.Error(errors.Join(err, u.Kill()))
		}
	})
	if err := u.Start(ctx); err != nil {
		t.Fatal(err)
	}
	return u
}

func TestOneOfTwoFileWorkersIsKilledUnderLoad(t *testing.T) {
	t.Parallel()
	r := newTestRig(t, RigConfig{Dispatchers: 1, FileWorkers: 2})
	c, m := clients(t, r)
	strike(t, c, m, func(ctx context.Context, random *rand.Rand) error {
		w := r.FileWorkers[random.IntN(len(r.FileWorkers))]
		if err := w.Kill(); err != nil {
			return err
		}
		sleep(ctx, time.Duration(random.IntN(500))*time.Millisecond)
		return w.Start(ctx)
	})
}

func TestTheQueuesStoreIsWipedUnderLoad(t *testing.T) {
	t.Parallel()
	r := newTestRig(t, RigConfig{Dispatchers: 1, FileWorkers: 2})
	c, m := clients(t, r)
	strike(t, c, m, func(ctx context.Context, _ *rand.Rand) error { return r.WipeNATS(ctx) })
}
