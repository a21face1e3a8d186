package store

import (
	"context"
	"net"
	"time"
)

// unheard is how long a connection may go without a sign of the other end before it is given up: a link that was cut
// without a word would otherwise hold a statement for a quarter of an hour.
const unheard = 20 * time.Second

// dial connects to the database.
func dial(ctx context.Context, network, addr string) (net.Conn, error) {
	d := net.Dialer{
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: unheard / 2, Interval: unheard / 8, Count: 4},
		Control:         giveUpUnheard,
	}
	return d.DialContext(ctx, network, addr)
}
