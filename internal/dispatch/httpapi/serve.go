package httpapi

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"time"
)

// maxHeaderBytes bounds a request's header.
const maxHeaderBytes = 64 << 10

// Serve answers on ln until ctx ends. Then it says at once that it is not ready, and goes on as before for Timeouts.Notice.
// After that it takes no new connections, ends streams of events, gives what is under way half of what is left of
// Timeouts.Grace to end by itself, answers waits for results with 202, and after the whole of it closes what is left. It may
// be called once. It closes ln.
func (s *Server) Serve(ctx context.Context, ln net.Listener) error {
	server := &http.Server{
		Handler: s, ReadHeaderTimeout: s.cfg.Timeouts.Header, IdleTimeout: s.cfg.Timeouts.Idle, MaxHeaderBytes: maxHeaderBytes,
		ErrorLog: log.New(s.cfg.Log, "", 0),
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ln) }()
	select {
	case err := <-ended:
		return fmt.Errorf("serve HTTP: %w", err)
	case <-ctx.Done():
	}
	s.draining.Store(true)
	notice := min(s.cfg.Timeouts.Notice, s.cfg.Timeouts.Grace/2)
	if notice > 0 {
		s.cfg.Log.Info().Dur("notice", notice).Msg("not ready any more; still serving")
		select {
		case err := <-ended:
			return fmt.Errorf("serve HTTP: %w", err)
		case <-time.After(notice):
		}
	}
	close(s.stop)
	left := s.cfg.Timeouts.Grace - notice
	cut := time.AfterFunc(left/2, s.cutWaits)
	defer cut.Stop()
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), left)
	defer cancel()
	err := server.Shutdown(grace)
	if err != nil {
		err = errors.Join(fmt.Errorf("stop serving HTTP: %w", err), server.Close())
	}
	if served := <-ended; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}

// waiting gives a context for waiting that also ends when the server must stop waiting.
func (s *Server) waiting(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	off := context.AfterFunc(s.cut, cancel)
	return ctx, func() { off(); cancel() }
}
