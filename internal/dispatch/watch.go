package dispatch

import (
	"context"
	"encoding/json"

	"treeline/internal/queue"
)

// watchBuffer is how many notices a slow subscriber may be behind before it is cut off.
const watchBuffer = 1024

// Watch gives each result and each piece of progress of the token's turn, from now on. The channel is closed when ctx
// ends, and when the subscriber falls too far behind.
func (d *Dispatcher) Watch(ctx context.Context, token string) (<-chan Notice, error) {
	t, err := d.turn(ctx, token)
	if err != nil {
		return nil, err
	}
	if r := gone(t); r != nil {
		return nil, r
	}
	ctx, cancel := context.WithCancel(ctx)
	in := make(chan Notice, watchBuffer)
	stop, err := d.queue.WatchTurn(t.Conversation, t.ID, func(m queue.Told) {
		n := Notice{Kind: "progress", Call: m.Call, Data: json.RawMessage(m.Data)}
		if m.Result {
			n.Kind = "result"
		}
		select {
		case in <- n:
		default:
			cancel()
		}
	})
	if err != nil {
		cancel()
		return nil, err
	}
	out := make(chan Notice)
	go func() {
		defer close(out)
		defer cancel()
		defer stop()
		for {
			select {
			case <-ctx.Done():
				return
			case n := <-in:
				select {
				case out <- n:
				case <-ctx.Done():
					return
				}
			}
		}
	}()
	return out, nil
}
