// Package outage tells an error that says the database or the queue cannot be reached, or is too busy, from one that says
// something is wrong with a request or with this program. What such an error is about may be tried again.
package outage

import (
	"context"
	"errors"
	"io"
	"net"
	"syscall"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/puddle/v2"
	"github.com/nats-io/nats.go"
)

// ErrForgotten says that what the database had taken without waiting for its disk was lost in a crash, before anybody was
// told that it was taken.
var ErrForgotten = errors.New("the database crashed before it had kept what it took")

// Is reports whether err says so. An end of a context counts: what took too long may do so no more.
func Is(err error) bool {
	var refused *pgconn.ConnectError
	var network net.Error
	var pg *pgconn.PgError
	switch {
	case errors.As(err, &pg):
		return transient(pg.Code)
	case errors.As(err, &refused), errors.As(err, &network), pgconn.SafeToRetry(err), pgconn.Timeout(err):
		return true
	}
	for _, known := range []error{
		ErrForgotten, context.DeadlineExceeded, context.Canceled, io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, syscall.ECONNRESET, syscall.EPIPE,
		pgconn.ErrConnClosed, puddle.ErrClosedPool, nats.ErrConnectionClosed, nats.ErrConnectionDraining, nats.ErrDisconnected, nats.ErrTimeout,
		nats.ErrNoResponders, nats.ErrReconnectBufExceeded, nats.ErrConnectionReconnecting, nats.ErrNoServers,
	} {
		if errors.Is(err, known) {
			return true
		}
	}
	return false
}

// transient reports whether a class of SQLSTATE passes by itself.
func transient(code string) bool {
	if len(code) != 5 {
		return false
	}
	switch code[:2] {
	case "08", // the connection broke
		"53", // no more memory, disk or connections
		"57", // shut down, or a statement's time was up
		"25", // the transaction's time was up, or the server only reads
		"40", // deadlock
		"55", // a lock's time was up
		"58": // the server's own input and output
		return true
	}
	return false
}
