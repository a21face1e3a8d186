package queue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"

	"treeline/internal/call"
	"treeline/internal/ledger"
	"treeline/internal/workspace"
)

// StreamState is what the results stream holds.
type StreamState struct {
	Created time.Time
	LastSeq int64
}

// Queue is a connection to JetStream. It reconnects for ever; while it is cut off, publishing fails or waits, and the
// ledger's sweeper makes up for what was lost.
type Queue struct {
	nc  *nats.Conn
	js  jetstream.JetStream
	cfg Config
	log zerolog.Logger

	// ctx ends what runs beside the callers, when the queue is closed or the context that it was made with ends.
	ctx    context.Context
	end    context.CancelFunc
	beside sync.WaitGroup

	mu      sync.Mutex
	created time.Time
	again   chan struct{} // closed and made anew at each reconnect
	onSetUp []func(context.Context, StreamState) error
	closed  bool
}

// Options are how to reach the servers.
type Options struct {
	URL  string
	Name string
	// Extra are further options, such as credentials or an in-process server.
	Extra []nats.Option
}

// Connect reaches the servers, trying with growing pauses until ctx ends, and sets the streams up. The queue lives as long
// as ctx and until Close.
func Connect(ctx context.Context, o Options, cfg Config, log zerolog.Logger) (*Queue, error) {
	if err := checkURL(o.URL); err != nil {
		return nil, err
	}
	q := &Queue{cfg: cfg, log: log, again: make(chan struct{})}
	q.ctx, q.end = context.WithCancel(ctx)
	if err := q.connect(o); err != nil {
		q.end()
		return nil, err
	}
	q.run(q.watch)
	return q, nil
}

// checkURL refuses an address that can never be reached, and does not show it: it may hold a password.
func checkURL(addresses string) error {
	for address := range strings.SplitSeq(addresses, ",") {
		address = strings.TrimSpace(address)
		if !strings.Contains(address, "://") {
			address = "nats://" + address
		}
		if _, err := url.Parse(address); err != nil {
			return errors.New("the queue's address is no URL: want nats://user:password@host:port, special characters of the password as %XX")
		}
	}
	return nil
}

func (q *Queue) connect(o Options) error {
	ctx, log := q.ctx, q.log
	opts := append([]nats.Option{
		nats.Name(o.Name),
		nats.MaxReconnects(-1),
		// A server that refuses the credentials while it is being set up anew must not end the connection for good.
		nats.IgnoreAuthErrorAbort(),
		// Orchestrators may read the common inboxes; what the fleet's own parts are answered is not theirs.
		nats.CustomInboxPrefix("_TREELINE_INBOX"),
		nats.CustomReconnectDelay(reconnectDelay),
		nats.PingInterval(10 * time.Second), nats.MaxPingsOutstanding(2), // a half-open link is noticed within half a minute
		nats.ReconnectHandler(func(*nats.Conn) { q.run(q.reconnected) }),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil { // not closed by this program itself
				log.Warn().Err(err).Msg("cut off from the queue")
			}
		}),
		nats.ErrorHandler(func(_ *nats.Conn, s *nats.Subscription, err error) {
			e := log.Warn().Err(err)
			if s != nil {
				e = e.Str("subject", s.Subject)
			}
			e.Msg("queue error")
		}),
	}, o.Extra...)
	err := retry(ctx, log, "reach the queue", func() error {
		nc, err := nats.Connect(o.URL, opts...)
		if err != nil {
			return err
		}
		q.nc = nc
		return nil
	})
	if err != nil {
		return fmt.Errorf("reach the queue: %w", err)
	}
	if q.js, err = jetstream.New(q.nc, jetstream.WithDefaultTimeout(5*time.Second)); err != nil {
		q.nc.Close()
		return fmt.Errorf("use JetStream: %w", err)
	}
	if err := retry(ctx, log, "set the streams up", func() error { return q.setUp(ctx) }); err != nil {
		q.nc.Close()
		return err
	}
	return nil
}

// run has fn run beside the callers until it returns; Close ends its context and waits for it.
func (q *Queue) run(fn func(context.Context)) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.closed {
		q.beside.Go(func() { fn(q.ctx) })
	}
}

// Reconnecting grows from 50 ms to 2 s, with the spread that keeps a fleet from coming back all at once.
func reconnectDelay(attempts int) time.Duration {
	b := backoff.NewExponentialBackOff(backoff.WithInitialInterval(50*time.Millisecond), backoff.WithMaxInterval(2*time.Second),
		backoff.WithMaxElapsedTime(0))
	d := b.NextBackOff()
	for range min(attempts, 12) {
		d = b.NextBackOff()
	}
	return d
}

func retry(ctx context.Context, log zerolog.Logger, what string, fn func() error) error {
	b := backoff.NewExponentialBackOff(backoff.WithInitialInterval(50*time.Millisecond), backoff.WithMaxInterval(2*time.Second),
		backoff.WithMaxElapsedTime(0))
	return backoff.RetryNotify(fn, backoff.WithContext(b, ctx), func(err error, d time.Duration) {
		log.Warn().Err(err).Dur("again_in", d).Msg(what)
	})
}

// setUpWithin bounds the setting up of the streams. What hooks then do has no bound here: it may be much.
const setUpWithin = 10 * time.Second

func (q *Queue) setUp(ctx context.Context) error {
	bounded, cancel := context.WithTimeout(ctx, setUpWithin)
	defer cancel()
	info, err := setUp(bounded, q.js, q.cfg)
	if err != nil {
		return err
	}
	state := StreamState{Created: micro(info.Created), LastSeq: int64(info.State.LastSeq)}
	q.mu.Lock()
	q.created = state.Created
	hooks := slices.Clone(q.onSetUp)
	q.mu.Unlock()
	for _, hook := range hooks {
		if err := hook(ctx, state); err != nil {
			return err
		}
	}
	return nil
}

// micro cuts a time to what Postgres keeps, so that what was stored compares equal.
func micro(t time.Time) time.Time { return t.UTC().Truncate(time.Microsecond) }

// OnSetUp calls hook with the results stream's state now, and whenever streams have been set up again: after a reconnect,
// and where they were lost without one. It tries until hook has succeeded once, or ctx ends.
func (q *Queue) OnSetUp(ctx context.Context, hook func(context.Context, StreamState) error) error {
	q.mu.Lock()
	q.onSetUp = append(q.onSetUp, hook)
	q.mu.Unlock()
	return retry(ctx, q.log, "set the streams up", func() error { return q.setUp(ctx) })
}

// reconnected sets the streams up again, in case the server lost them, and wakes who waits.
func (q *Queue) reconnected(ctx context.Context) {
	if err := retry(ctx, q.log, "set the streams up again", func() error { return q.setUp(ctx) }); err != nil {
		return // the program ends
	}
	q.log.Info().Msg("back on the queue")
	q.mu.Lock()
	defer q.mu.Unlock()
	close(q.again)
	q.again = make(chan struct{})
}

// watch looks now and then whether the streams are still those that were set up: they may be lost while the connection
// stands, and who only publishes would never be told.
func (q *Queue) watch(ctx context.Context) {
	tick := time.NewTicker(q.cfg.watchEvery())
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if q.nc.IsConnected() && q.lost(ctx) {
			q.log.Warn().Msg("the streams were lost; they are set up again")
			q.reconnected(ctx)
		}
	}
}

// lost reports whether a stream is gone, or is another than the one that was set up. What cannot be asked is not lost.
func (q *Queue) lost(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, setUpWithin)
	defer cancel()
	if _, err := q.js.Stream(ctx, CallsStream); err != nil {
		return errors.Is(err, jetstream.ErrStreamNotFound)
	}
	results, err := q.js.Stream(ctx, ResultsStream)
	if err != nil {
		return errors.Is(err, jetstream.ErrStreamNotFound)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return !micro(results.CachedInfo().Created).Equal(q.created)
}

// Again gives a channel that is closed at the next reconnect: what was told meanwhile may have been missed.
func (q *Queue) Again() <-chan struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.again
}

// Conn gives the connection, for the way in over NATS.
func (q *Queue) Conn() *nats.Conn { return q.nc }

// Healthy reports why the queue cannot be used now, or nil.
func (q *Queue) Healthy() error {
	if !q.nc.IsConnected() {
		return errors.New("cut off from the queue")
	}
	return nil
}

// Close lets what is on its way out, for at most a few seconds, and closes the connection. Closing twice is fine.
func (q *Queue) Close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	q.end()
	q.beside.Wait()
	_ = q.nc.FlushTimeout(2 * time.Second) // what is lost here the sweeper tells
	q.nc.Close()
}

// PublishEvent publishes a call-ready event and returns once the stream has it.
func (q *Queue) PublishEvent(ctx context.Context, e ledger.Event) error {
	b, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("encode the event: %w", err)
	}
	if _, err := q.js.Publish(ctx, callsPrefix+e.Lane+"."+e.Conversation, b); err != nil {
		return fmt.Errorf("publish that call %s is ready: %w", e.Key(), err)
	}
	return nil
}

// SendEvent publishes a call-ready event without waiting for the stream to have it. One that is lost the sweeper makes
// up for.
func (q *Queue) SendEvent(e ledger.Event) error {
	b, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("encode the event: %w", err)
	}
	if err := q.nc.Publish(callsPrefix+e.Lane+"."+e.Conversation, b); err != nil {
		return fmt.Errorf("publish that call %s is ready: %w", e.Key(), err)
	}
	return nil
}

// PublishResult publishes a result under its call's Nats-Msg-Id and returns once the stream has it.
func (q *Queue) PublishResult(ctx context.Context, k call.Key, result []byte) (ledger.Telling, error) {
	body, err := toldBody(result)
	if err != nil {
		return ledger.Telling{}, err
	}
	q.mu.Lock()
	created := q.created
	q.mu.Unlock()
	ack, err := q.js.Publish(ctx, ResultSubject(k), body, jetstream.WithMsgID(k.String()))
	if err != nil {
		return ledger.Telling{}, fmt.Errorf("publish the result of %s: %w", k, err)
	}
	return ledger.Telling{Key: k, Stream: created, Seq: int64(ack.Sequence)}, nil
}

// toldBody leaves out of a large result what has to be asked for; so many changed paths, too, that the rest is as large.
func toldBody(result []byte) ([]byte, error) {
	most := workspace.DefaultLimits().ToldBytes
	if len(result) <= most {
		return result, nil
	}
	var m map[string]json.RawMessage
	if err := json.Unmarshal(result, &m); err != nil {
		return nil, fmt.Errorf("read the result to tell it short: %w", err)
	}
	for _, field := range []string{"content", "data", "replayArguments"} {
		delete(m, field)
	}
	if len(m["changes"]) > most/2 {
		delete(m, "changes")
	}
	b, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("encode the short result: %w", err)
	}
	return b, nil
}

// ResultSubject is where a call's result is told.
func ResultSubject(k call.Key) string { return resultsPrefix + k.String() }

// ProgressSubject is where a running call's progress is told.
func ProgressSubject(k call.Key) string { return progressPrefix + k.String() }

// PublishCancel asks whoever runs a call to stop; heartbeats are the backstop.
func (q *Queue) PublishCancel(k call.Key) error {
	if err := q.nc.Publish(cancelPrefix+k.String(), nil); err != nil {
		return fmt.Errorf("publish the cancelling of %s: %w", k, err)
	}
	return nil
}

// PublishProgress tells a piece of progress; it may be lost.
func (q *Queue) PublishProgress(k call.Key, body []byte) error {
	if err := q.nc.Publish(ProgressSubject(k), body); err != nil {
		return fmt.Errorf("publish progress of %s: %w", k, err)
	}
	return nil
}

// PurgeConversation removes a conversation's results from the stream.
func (q *Queue) PurgeConversation(ctx context.Context, conversation string) error {
	s, err := q.js.Stream(ctx, ResultsStream)
	if err != nil {
		return fmt.Errorf("find the stream %s: %w", ResultsStream, err)
	}
	if err := s.Purge(ctx, jetstream.WithPurgeSubject(resultsPrefix+conversation+".>")); err != nil {
		return fmt.Errorf("purge the results of %s: %w", conversation, err)
	}
	return nil
}
