package torture

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"treeline/internal/call"
)

// latencies makes calls in several conversations, one after another in each, and gives how long each took, sorted.
func latencies(t *testing.T, c *Client, name string, conversations, each int) []time.Duration {
	t.Helper()
	var mu sync.Mutex
	var all []time.Duration
	var wg sync.WaitGroup
	for i := range conversations {
		k := newCaller(t, c, fmt.Sprintf("%s-%d", name, i))
		wg.Go(func() {
			for range each {
				r := k.request("write_file", newFile{"a.txt", fmt.Sprintf("content %d\n", k.n)})
				begun := time.Now()
				if _, err := settled(t.Context(), c, r); err != nil {
					t.Errorf("%s: %v", k.name, err)
					return
				}
				mu.Lock()
				all = append(all, time.Since(begun))
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	slices.Sort(all)
	return all
}

func TestOneConversationThatFloodsSlowsNoOther(t *testing.T) {
	r := newTestRig(t, RigConfig{Dispatchers: 2, FileWorkers: 2})
	c, _ := clients(t, r)
	alone := latencies(t, c, "alone", 5, 30)
	flood := newCaller(t, c, "flood")
	requests := make([]Request, 1000)
	for i := range requests {
		requests[i] = flood.request("write_file", newFile{"a.txt", fmt.Sprintf("content %d\n", i)})
	}
	ctx, stop := context.WithCancel(t.Context())
	var flooding sync.WaitGroup
	for i := range 32 {
		flooding.Go(func() {
			for j := i; j < len(requests) && ctx.Err() == nil; j += 32 {
				for ctx.Err() == nil {
					if replies, err := c.SendNATS(ctx, requests[j]); err == nil && replies[0].Accepted {
						break
					}
					sleep(ctx, 10*time.Millisecond)
				}
			}
		})
	}
	beside := latencies(t, c, "beside", 5, 30)
	stop()
	flooding.Wait()
	p := func(d []time.Duration, q float64) time.Duration { return d[int(q*float64(len(d)-1))] }
	t.Logf("alone p50 %s p99 %s; beside a flood p50 %s p99 %s", p(alone, 0.5), p(alone, 0.99), p(beside, 0.5), p(beside, 0.99))
	if got, most := p(beside, 0.5), 6*p(alone, 0.5)+50*time.Millisecond; got > most {
		t.Errorf("beside a flood half of the calls take %s or more, want %s at most", got, most)
	}
}

func TestMoreCallsThanCanBeDoneAreRefusedAndTheFleetRecovers(t *testing.T) {
	s := QuickSettings()
	s.WaitingCalls = 8
	r := newTestRig(t, RigConfig{Dispatchers: 2, FileWorkers: 2, Settings: s})
	c, _ := clients(t, r)
	callers := make([]*caller, 10)
	for i := range callers {
		callers[i] = newCaller(t, c, fmt.Sprintf("over-%d", i))
	}
	ctx, stop := context.WithTimeout(t.Context(), 6*time.Second)
	defer stop()
	var busy, accepted atomic.Int64
	var wg sync.WaitGroup
	for i := range 400 {
		wg.Go(func() {
			k := callers[i%len(callers)]
			for n := 0; ctx.Err() == nil; n++ {
				req := Request{Token: k.token, CallID: fmt.Sprintf("o%d-%d", i, n), Tool: "write_file", Arguments: mustJSON(newFile{"a.txt", fmt.Sprintf("%d %d\n", i, n)})}
				reply, err := c.SendHTTP(ctx, req, 2*time.Second)
				switch {
				case err == nil && reply.Refusal == call.Busy:
					busy.Add(1)
				case err == nil && reply.Accepted:
					accepted.Add(1)
				}
			}
		})
	}
	wg.Wait()
	for _, p := range r.Roles() {
		if mib := residentMiB(t, p.PID()); mib > 400 {
			t.Errorf("%s has %d MiB in memory", p.Name, mib)
		}
	}
	begun := time.Now()
	k := newCaller(t, c, "afterwards")
	k.do("write_file", newFile{"a.txt", "calm\n"})
	recovered := time.Since(begun)
	if recovered > 5*time.Second {
		t.Errorf("a call after the load took %s", recovered)
	}
	if busy.Load() == 0 || accepted.Load() == 0 {
		t.Errorf("%d accepted and %d refused as busy, want some of both", accepted.Load(), busy.Load())
	}
	t.Logf("%d accepted, %d busy; a call after the load took %s", accepted.Load(), busy.Load(), recovered)
}

// residentMiB is what a process has in memory.
func residentMiB(t *testing.T, pid int) int {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	var kib int
	if _, rest, found := strings.Cut(string(b), "VmRSS:"); !found {
		t.Fatal("its memory is not told")
	} else if _, err := fmt.Sscan(rest, &kib); err != nil {
		t.Fatal(err)
	}
	return kib >> 10
}
