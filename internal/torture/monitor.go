package torture

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"treeline/internal/call"
)

const (
	resultsStream = "TREELINE_RESULTS"
	resultsPrefix = "treeline.results."
)

// Told is one result as it was told.
type Told struct {
	Result call.Result
	// Times is how often it was told; Differs holds another wording of it, if one was told.
	Times   int
	Differs []byte
	first   []byte
}

// Monitor is a subscriber that has nothing but NATS. It reads the stream of results from its beginning again whenever it
// was cut off, as one does who must miss nothing.
type Monitor struct {
	nc   *nats.Conn
	js   jetstream.JetStream
	stop context.CancelFunc
	wg   sync.WaitGroup

	mu      sync.Mutex
	told    map[call.Key]*Told
	changed chan struct{} // closed when something is told
	again   chan struct{} // closed at each reconnect
	errs    []error
}

// NewMonitor subscribes. The server need not run yet.
func NewMonitor(natsURL string) (*Monitor, error) {
	m := &Monitor{told: map[call.Key]*Told{}, changed: make(chan struct{}), again: make(chan struct{})}
	var err error
	m.nc, err = nats.Connect(natsURL, nats.MaxReconnects(-1), nats.RetryOnFailedConnect(true), nats.ReconnectWait(50*time.Millisecond),
		nats.ReconnectJitter(10*time.Millisecond, 10*time.Millisecond), nats.ReconnectHandler(func(*nats.Conn) { m.reconnected() }))
	if err != nil {
		return nil, fmt.Errorf("connect the monitor to NATS: %w", err)
	}
	if m.js, err = jetstream.New(m.nc); err != nil {
		m.nc.Close()
		return nil, fmt.Errorf("use JetStream: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	m.stop = cancel
	m.wg.Go(func() { m.run(ctx) })
	return m, nil
}

// Close ends the subscription.
func (m *Monitor) Close() {
	m.stop()
	m.wg.Wait()
	m.nc.Close()
}

func (m *Monitor) reconnected() {
	m.mu.Lock()
	defer m.mu.Unlock()
	close(m.again)
	m.again = make(chan struct{})
}

func (m *Monitor) run(ctx context.Context) {
	for ctx.Err() == nil {
		m.mu.Lock()
		again := m.again
		m.mu.Unlock()
		if err := m.read(ctx, again); err != nil {
			sleep(ctx, 50*time.Millisecond) // not there yet; it is looked for again
		}
	}
}

// read follows the stream from its beginning until the connection was cut.
func (m *Monitor) read(ctx context.Context, again <-chan struct{}) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	unhook := make(chan struct{})
	defer close(unhook)
	go func() {
		select {
		case <-again:
			cancel()
		case <-unhook:
		}
	}()
	setUp, done := context.WithTimeout(ctx, 3*time.Second)
	defer done()
	c, err := m.js.OrderedConsumer(setUp, resultsStream, jetstream.OrderedConsumerConfig{DeliverPolicy: jetstream.DeliverAllPolicy})
	if err != nil {
		return err
	}
	it, err := c.Messages(jetstream.PullHeartbeat(time.Second), jetstream.PullExpiry(5*time.Second))
	if err != nil {
		return err
	}
	defer it.Stop()
	for {
		msg, err := it.Next(jetstream.NextContext(ctx))
		if err != nil {
			return err
		}
		m.note(msg.Subject(), msg.Data())
	}
}

func (m *Monitor) note(subject string, data []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	parts := strings.Split(strings.TrimPrefix(subject, resultsPrefix), ".")
	var res call.Result
	if err := json.Unmarshal(data, &res); err != nil || len(parts) != 3 {
		m.errs = append(m.errs, fmt.Errorf("told on %s: %q", subject, data))
		return
	}
	k := call.Key{Conversation: parts[0], Turn: parts[1], Call: parts[2]}
	if own := (call.Key{Conversation: res.ConversationID, Turn: res.TurnID, Call: res.CallID}); own != k {
		m.errs = append(m.errs, fmt.Errorf("the result of %s was told on %s", own, subject))
	}
	t := m.told[k]
	if t == nil {
		t = &Told{Result: res, first: data}
		m.told[k] = t
	}
	t.Times++
	if string(t.first) != string(data) {
		t.Differs = data
	}
	close(m.changed)
	m.changed = make(chan struct{})
}

// Told gives what was told of a call.
func (m *Monitor) Told(k call.Key) (Told, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	t := m.told[k]
	if t == nil {
		return Told{}, false
	}
	return *t, true
}

// Keys are the calls of which something was told.
func (m *Monitor) Keys() []call.Key {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := make([]call.Key, 0, len(m.told))
	for k := range m.told {
		out = append(out, k)
	}
	return out
}

// Err gives what was told wrongly.
func (m *Monitor) Err() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return errors.Join(m.errs...)
}

// Await returns once a call's result was told, or with ctx's error.
func (m *Monitor) Await(ctx context.Context, k call.Key) (call.Result, error) {
	for {
		m.mu.Lock()
		t, changed := m.told[k], m.changed
		m.mu.Unlock()
		if t != nil {
			return t.Result, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return call.Result{}, fmt.Errorf("the result of %s was not told: %w", k, ctx.Err())
		}
	}
}
