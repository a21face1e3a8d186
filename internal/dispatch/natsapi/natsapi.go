// Package natsapi is the way in over NATS: requests on treeline.call and treeline.result. It only translates to and from
// the dispatcher; every request is answered, with what is in schemas/messages.
package natsapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"

	"treeline/internal/call"
	"treeline/internal/catalogue"
	"treeline/internal/dispatch"
)

// The subjects of requests.
const (
	CallSubject   = "treeline.call"
	ResultSubject = "treeline.result"
)

// Dispatcher is what the subjects need of the dispatcher; *dispatch.Dispatcher is one.
type Dispatcher interface {
	Submit(ctx context.Context, token string, requests []dispatch.Request) ([]dispatch.Answer, error)
	Lookup(ctx context.Context, token, callID string) (dispatch.Answer, error)
	Tools(ctx context.Context, token string) ([]catalogue.Tool, error)
}

// Config bounds the work.
type Config struct {
	// Queue is the queue group that all dispatchers share.
	Queue string
	// AtOnce is how many requests are worked on at once; one more is answered with busy.
	AtOnce int
	// Timeout bounds the work on one request.
	Timeout time.Duration
	// MessageBytes is the largest request that is taken.
	MessageBytes int
	// Grace bounds how long requests at hand may take once the serving ends.
	Grace time.Duration
}

// DefaultConfig gives 128 requests at once, 20 s each, of at most 1 MiB.
func DefaultConfig() Config {
	return Config{Queue: "treeline-dispatchers", AtOnce: 128, Timeout: 20 * time.Second, MessageBytes: 1 << 20, Grace: 20 * time.Second}
}

// API answers requests. It may be run once.
type API struct {
	conn       *nats.Conn
	dispatcher Dispatcher
	cfg        Config
	log        zerolog.Logger

	slots chan struct{}
	// mu keeps a request from beginning once the waiting for those at hand has begun.
	mu      sync.Mutex
	stopped bool
	atHand  sync.WaitGroup
}

// New makes an API on a connection that the caller owns.
func New(conn *nats.Conn, d Dispatcher, cfg Config, log zerolog.Logger) *API {
	return &API{conn: conn, dispatcher: d, cfg: cfg, log: log, slots: make(chan struct{}, cfg.AtOnce)}
}

// Run answers requests until ctx ends. Then it takes no more, and returns once those that it has are answered, or after
// the grace period.
func (a *API) Run(ctx context.Context) error {
	// What is at hand when ctx ends is still done.
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	var subs []*nats.Subscription
	for subject, handle := range map[string]func(context.Context, *nats.Msg) any{CallSubject: a.call, ResultSubject: a.result} {
		sub, err := a.conn.QueueSubscribe(subject, a.cfg.Queue, func(m *nats.Msg) { a.take(work, m, handle) })
		if err != nil {
			return errors.Join(fmt.Errorf("subscribe to %s: %w", subject, err), a.drain(subs))
		}
		subs = append(subs, sub)
	}
	if err := a.conn.FlushTimeout(10 * time.Second); err != nil && ctx.Err() == nil {
		return errors.Join(fmt.Errorf("subscribe to requests: %w", err), a.drain(subs))
	}
	<-ctx.Done()
	return a.drain(subs)
}

// drain ends the subscriptions, lets what they have delivered be answered, and waits for that.
func (a *API) drain(subs []*nats.Subscription) error {
	grace := time.NewTimer(a.cfg.Grace)
	defer grace.Stop()
	var errs error
	late := errors.New("requests were still at hand when the grace period ended")
	for _, sub := range subs {
		closed := sub.StatusChanged(nats.SubscriptionClosed)
		if err := sub.Drain(); err != nil {
			if !errors.Is(err, nats.ErrConnectionClosed) {
				errs = errors.Join(errs, fmt.Errorf("stop taking requests: %w", err))
			}
			continue
		}
		select {
		case <-closed:
		case <-grace.C:
			return errors.Join(errs, late)
		}
	}
	a.mu.Lock()
	a.stopped = true
	a.mu.Unlock()
	done := make(chan struct{})
	go func() { a.atHand.Wait(); close(done) }()
	select {
	case <-done:
	case <-grace.C:
		return errors.Join(errs, late)
	}
	if a.conn.IsConnected() {
		if err := a.conn.FlushTimeout(time.Second); err != nil {
			errs = errors.Join(errs, fmt.Errorf("send the last answers: %w", err))
		}
	}
	return errs
}

// take answers one request beside the others, if there is room.
func (a *API) take(ctx context.Context, m *nats.Msg, handle func(context.Context, *nats.Msg) any) {
	a.mu.Lock()
	if a.stopped {
		a.mu.Unlock()
		a.respond(m, busy())
		return
	}
	select {
	case a.slots <- struct{}{}:
		a.atHand.Add(1)
		a.mu.Unlock()
	default:
		a.mu.Unlock()
		a.respond(m, busy())
		return
	}
	go func() {
		defer func() { <-a.slots; a.atHand.Done() }()
		ctx, cancel := context.WithTimeout(ctx, a.cfg.Timeout)
		defer cancel()
		a.respond(m, a.guarded(ctx, m, handle))
	}()
}

// guarded answers a panic too: silence would leave the caller to guess.
func (a *API) guarded(ctx context.Context, m *nats.Msg, handle func(context.Context, *nats.Msg) any) (answer any) {
	defer func() {
		if p := recover(); p != nil {
			a.log.Error().Interface("panic", p).Str("subject", m.Subject).Msg("panic at a request")
			answer = failed()
		}
	}()
	return handle(ctx, m)
}

func (a *API) respond(m *nats.Msg, answer any) {
	if m.Reply == "" {
		return // nobody waits; the result is told all the same
	}
	b, err := json.Marshal(answer)
	if err == nil && int64(len(b)) > a.conn.MaxPayload() {
		b, err = json.Marshal(refusal(call.Refuse(call.TooLarge, "The answer has %d bytes, more than a message of this server may. "+
			"GET /v1/calls/{callId} gives it whole.", len(b))))
	}
	if err == nil {
		err = m.Respond(b)
	}
	if err != nil {
		a.log.Warn().Err(err).Str("subject", m.Subject).Msg("request not answered")
	}
}

type accepted struct {
	Accepted bool    `json:"accepted"`
	Seq      []int64 `json:"seq"`
}

// call takes one call or one step.
func (a *API) call(ctx context.Context, m *nats.Msg) any {
	s, wrong := readStep(m.Data)
	if len(m.Data) > a.cfg.MessageBytes {
		return a.tooLarge(ctx, s, len(m.Data))
	}
	if wrong != nil {
		return refusal(wrong)
	}
	answers, err := a.dispatcher.Submit(ctx, s.token, s.calls)
	if err != nil {
		return a.refused(err, m.Subject, s.only())
	}
	out := accepted{Accepted: true, Seq: make([]int64, len(answers))}
	for i, answer := range answers {
		out.Seq[i] = answer.Seq
	}
	return out
}

// tooLarge refuses a message over the limit, once it is known whose it is.
func (a *API) tooLarge(ctx context.Context, s step, size int) any {
	if _, err := a.dispatcher.Tools(ctx, s.token); err != nil {
		return a.refused(err, CallSubject, s.only())
	}
	return refusal(dispatch.TooLarge(size, s.only()))
}

type waiting struct {
	CallID string `json:"callId"`
	Seq    int64  `json:"seq"`
	State  string `json:"state"`
}

// result gives the whole result of a call, or where it stands.
func (a *API) result(ctx context.Context, m *nats.Msg) any {
	token, callID, wrong := readResultRequest(m.Data)
	if wrong != nil {
		return refusal(wrong)
	}
	answer, err := a.dispatcher.Lookup(ctx, token, callID)
	if err != nil {
		return a.refused(err, m.Subject, callID)
	}
	if answer.Result != nil {
		return answer.Result
	}
	return waiting{answer.CallID, answer.Seq, answer.State}
}
