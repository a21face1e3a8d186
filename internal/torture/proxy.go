package torture

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

// Link is the state of the wire that a proxy stands for.
type Link int

// The states of a link.
const (
	// Whole carries everything.
	Whole Link = iota
	// Dropped cuts all connections and takes no new ones.
	Dropped
	// Slow holds each piece back for a while.
	Slow
	// HalfOpen takes connections and everything that is sent, and carries nothing: what a cable that is out looks like.
	HalfOpen
)

// slowness is how long a slow link holds each piece back.
const slowness = 60 * time.Millisecond

// Proxy carries TCP connections to one address, as well as its link allows.
type Proxy struct {
	target   string
	listener net.Listener
	wg       sync.WaitGroup

	mu     sync.Mutex
	link   Link
	conns  map[net.Conn]struct{}
	closed bool
}

// NewProxy listens on the loopback interface, on a port that the system chooses.
func NewProxy(target string) (*Proxy, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for %s: %w", target, err)
	}
	p := &Proxy{target: target, listener: ln, conns: map[net.Conn]struct{}{}}
	p.wg.Go(p.accept)
	return p, nil
}

// Addr is where the proxy listens.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Set changes the link. To mend a half-open link drops its connections, as the two ends would find out then.
func (p *Proxy) Set(l Link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if l == Dropped || (p.link == HalfOpen && l != HalfOpen) {
		for c := range p.conns {
			_ = c.Close()
		}
	}
	p.link = l
}

// Close cuts everything and returns once nothing is left.
func (p *Proxy) Close() error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.Set(Dropped)
	err := p.listener.Close()
	p.wg.Wait()
	return err
}

func (p *Proxy) accept() {
	for {
		c, err := p.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			time.Sleep(10 * time.Millisecond) // out of descriptors, perhaps
			continue
		}
		p.wg.Go(func() { p.serve(c) })
	}
}

// keep notes a connection, or closes it where the link takes none.
func (p *Proxy) keep(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.link == Dropped {
		_ = c.Close()
		return false
	}
	p.conns[c] = struct{}{}
	return true
}

func (p *Proxy) forget(c net.Conn) {
	_ = c.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
}

func (p *Proxy) serve(near net.Conn) {
	if !p.keep(near) {
		return
	}
	defer p.forget(near)
	far, err := net.DialTimeout("tcp", p.target, 5*time.Second)
	if err != nil || !p.keep(far) {
		return
	}
	defer p.forget(far)
	var both sync.WaitGroup
	both.Go(func() { p.carry(far, near) })
	both.Go(func() { p.carry(near, far) })
	both.Wait()
}

// carry copies from one end to the other until either ends, and then ends both.
func (p *Proxy) carry(to, from net.Conn) {
	defer func() { _, _ = to.Close(), from.Close() }()
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 && p.pass() {
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// pass waits as long as the link holds a piece back, and reports whether it is carried.
func (p *Proxy) pass() bool {
	p.mu.Lock()
	link := p.link
	p.mu.Unlock()
	if link == Slow {
		time.Sleep(slowness)
	}
	return link == Whole || link == Slow
}
