package queue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	// pullExpiry bounds one request to the server; a request that brings nothing is made anew, so that a server that
	// forgot it does not leave the slot waiting for ever.
	pullExpiry = 30 * time.Second
	// pullHeartbeat is how often the server says that it still has the request. After twice that it is taken for silent.
	pullHeartbeat = 5 * time.Second
)

// puller asks the server for one event of a lane after another. It asks by itself, since the client library's iterator
// makes room for as many messages as it asks for and no more: with a request for one, whatever comes on top of it, such as
// a heartbeat after a pause of the process, pushes it out, and the event comes again only after AckWait.
type puller struct {
	nc      *nats.Conn
	sub     *nats.Subscription
	lane    string
	inbox   string
	request []byte
	asked   int // counts the requests: the end of the present one's inbox
}

func newPuller(nc *nats.Conn, lane string) (*puller, error) {
	request, err := json.Marshal(struct {
		Expires   time.Duration `json:"expires"`
		Batch     int           `json:"batch"`
		Heartbeat time.Duration `json:"idle_heartbeat"`
	}{pullExpiry, 1, pullHeartbeat})
	if err != nil {
		return nil, fmt.Errorf("encode a request for events: %w", err)
	}
	p := &puller{nc: nc, lane: lane, inbox: nc.NewInbox(), request: request}
	if p.sub, err = nc.SubscribeSync(p.inbox + ".*"); err != nil {
		return nil, fmt.Errorf("subscribe to what is asked for: %w", err)
	}
	return p, nil
}

// stop has next return errStopped, now and later. It may be called beside next, and more than once.
func (p *puller) stop() { _ = p.sub.Unsubscribe() } // an error says that it has ended already

// errStopped says that a puller was stopped.
var errStopped = errors.New("stopped")

// next asks for an event and waits for it as long as the server says that it has the request.
func (p *puller) next() (*nats.Msg, error) {
	if err := p.ask(); err != nil {
		return nil, err
	}
	for {
		m, err := p.sub.NextMsg(2 * pullHeartbeat)
		switch {
		case errors.Is(err, nats.ErrTimeout) && !p.nc.IsConnected():
			continue // after the reconnect everything is asked for anew
		case errors.Is(err, nats.ErrTimeout):
			return nil, fmt.Errorf("the queue has fallen silent: %w", jetstream.ErrNoHeartbeat)
		case errors.Is(err, nats.ErrBadSubscription):
			return nil, errStopped
		case err != nil:
			return nil, fmt.Errorf("wait for an event: %w", err)
		}
		if m.Reply != "" { // where to acknowledge: only events have that
			return m, nil
		}
		if m.Subject != p.reply() {
			continue // the end of an earlier request
		}
		if err := p.heed(m.Header.Get("Status"), m.Header.Get("Description")); err != nil {
			return nil, err
		}
	}
}

func (p *puller) ask() error {
	p.asked++
	if err := p.nc.PublishRequest("$JS.API.CONSUMER.MSG.NEXT."+CallsStream+"."+p.lane, p.reply(), p.request); err != nil {
		return fmt.Errorf("ask for an event: %w", err)
	}
	return nil
}

func (p *puller) reply() string { return p.inbox + "." + strconv.Itoa(p.asked) }

// heed does what a status of the present request asks for.
func (p *puller) heed(status, description string) error {
	switch {
	case status == "100": // a heartbeat
		return nil
	case status == "408", status == "404": // nothing came in its time
		return p.ask()
	case status == "409" && description == "Consumer Deleted":
		return fmt.Errorf("ask for an event: %w", jetstream.ErrConsumerDeleted)
	case status == "503":
		return fmt.Errorf("ask for an event: %w", nats.ErrNoResponders)
	}
	return fmt.Errorf("ask for an event: the queue says %s %q", status, description)
}

// pull takes events until it is to stop, until the streams were set up again (nil), or until it cannot go on.
func (q *Queue) pull(ctx context.Context, stop <-chan struct{}, lane string, held *held, handle Handler) error {
	again := q.Again() // a request that a server forgot over a reconnect is made anew at once
	if _, err := q.js.Consumer(ctx, CallsStream, lane); err != nil {
		return fmt.Errorf("find the consumer %s: %w", lane, err)
	}
	p, err := newPuller(q.nc, lane)
	if err != nil {
		return err
	}
	done := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() {
		select {
		case <-stop:
		case <-ctx.Done():
		case <-again:
		case <-done:
		}
		p.stop()
	})
	defer watch.Wait()
	defer close(done)
	for {
		m, err := p.next()
		switch {
		case errors.Is(err, errStopped):
			return nil
		case err != nil:
			return err
		}
		q.deliver(ctx, m, held, handle)
		if ended(ctx, stop) {
			return nil
		}
	}
}
