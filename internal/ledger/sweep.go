package ledger

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"treeline/internal/call"
	"treeline/internal/store/db"
)

const (
	sweepBatch = 200
	// sweepLock is the advisory lock of sweeping. It is held by a transaction, so that no pool can strand it.
	sweepLock = 0x7472656c
)

// Sweeper finds what a crash left behind: calls that nothing will release, events and tellings that were lost, leases
// that ran out, deletions not purged. Everything that it writes carries the state that it saw.
type Sweeper struct {
	l      *Ledger
	bus    Bus
	teller *Teller
	log    zerolog.Logger
	// BetweenReadAndWrite, if set, is called between finding an expired lease and taking it back. Tests pause there.
	BetweenReadAndWrite func(call.Key)
}

// NewSweeper makes a sweeper; any number may run, one of them works at a time.
func NewSweeper(l *Ledger, bus Bus, teller *Teller, log zerolog.Logger) *Sweeper {
	return &Sweeper{l: l, bus: bus, teller: teller, log: log}
}

// Run sweeps every period until ctx ends. Errors are logged: the next sweep is the retry.
func (s *Sweeper) Run(ctx context.Context, every time.Duration) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		if err := s.Sweep(ctx); err != nil && ctx.Err() == nil {
			s.log.Warn().Err(err).Msg("sweep cut short")
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// Sweep makes one pass, unless another sweeper is at work.
func (s *Sweeper) Sweep(ctx context.Context) error {
	return pgx.BeginFunc(ctx, s.l.pool, func(tx pgx.Tx) error {
		mine, err := s.l.q.WithTx(tx).SweepLock(ctx, sweepLock)
		if err != nil || !mine {
			return err
		}
		// Each part runs in transactions of its own; this one only holds the lock.
		return errors.Join(s.purge(ctx), s.expired(ctx), s.stuck(ctx), s.released(ctx), s.untold(ctx), s.prune(ctx))
	})
}

// publish publishes events, until one cannot be: each comes up again by itself.
func (s *Sweeper) publish(ctx context.Context, events []Event) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(tellAtOnce)
	for _, e := range events {
		g.Go(func() error { return s.bus.PublishEvent(ctx, e) })
	}
	return g.Wait()
}

// stuck releases the oldest call of each conversation of which nothing is released or running. One that cannot be released
// now keeps no other waiting.
func (s *Sweeper) stuck(ctx context.Context) error {
	ids, err := s.l.q.Stuck(ctx, sweepBatch)
	if err != nil {
		return fmt.Errorf("look for stuck conversations: %w", err)
	}
	var errs []error
	var events []Event
	for _, id := range ids {
		next, err := s.release(ctx, id)
		errs = append(errs, err)
		if next != nil {
			s.log.Warn().Str("conversation", id).Int64("seq", next.Seq).Msg("released a conversation that nothing else would have")
			events = append(events, *next)
		}
	}
	return errors.Join(append(errs, s.publish(ctx, events))...)
}

func (s *Sweeper) release(ctx context.Context, conversation string) (next *Event, err error) {
	err = s.l.inTx(ctx, "release a stuck conversation", func(q *db.Queries) error {
		next = nil
		if _, err := lock(ctx, q, conversation); err != nil {
			return err
		}
		var err error
		next, err = s.l.releaseNext(ctx, q, conversation, 0)
		return err
	})
	return next, err
}

// released publishes again the events of calls that have been ready for long: batch after batch, since of a lost stream
// these may be many.
func (s *Sweeper) released(ctx context.Context) error {
	for range mostBatches {
		rows, err := s.l.q.OldReleased(ctx, db.OldReleasedParams{Limit: sweepBatch, DueAfter: s.l.laterDue()})
		if err != nil {
			return fmt.Errorf("look for calls that nobody took: %w", err)
		}
		events := make([]Event, len(rows))
		for i, r := range rows {
			events[i] = Event{Conversation: r.ConversationID, Turn: r.TurnID, Call: r.CallID, Lane: r.Lane, Seq: r.Seq, Generation: r.Generation}
		}
		if err := s.publish(ctx, events); err != nil || len(rows) < sweepBatch {
			return err
		}
	}
	return nil
}

// expired takes back calls whose worker let the lease run out, or ends them after the last attempt. One that cannot be now
// keeps no other waiting.
func (s *Sweeper) expired(ctx context.Context) error {
	rows, err := s.l.q.Expired(ctx, sweepBatch)
	if err != nil {
		return fmt.Errorf("look for leases that ran out: %w", err)
	}
	var errs []error
	var events []Event
	for _, r := range rows {
		key := call.Key{Conversation: r.ConversationID, Turn: r.TurnID, Call: r.CallID}
		if s.BetweenReadAndWrite != nil {
			s.BetweenReadAndWrite(key)
		}
		next, err := s.takeOver(ctx, key, r)
		if next != nil {
			events = append(events, *next)
		}
		var gone *call.Refusal // the conversation was deleted meanwhile
		if !errors.Is(err, ErrFenced) && !errors.As(err, &gone) {
			errs = append(errs, err)
		}
	}
	return errors.Join(append(errs, s.publish(ctx, events))...)
}

// takeOver gives the event of the call that is ready now, if one is.
func (s *Sweeper) takeOver(ctx context.Context, key call.Key, r db.ExpiredRow) (*Event, error) {
	if r.Token == nil {
		return nil, nil
	}
	switch {
	case r.CancelRequested:
		return s.endLost(ctx, key, *r.Token, cancelledOutcome())
	case int(r.Attempt) >= s.l.cfg.MaxAttempts:
		return s.endLost(ctx, key, *r.Token, FailedOutcome(call.WorkerLost, fmt.Sprintf("The worker doing this call was lost, %d times. "+
			"Nothing of it was kept. The call itself may be what ends the worker: do the work in smaller parts.", r.Attempt)))
	}
	row, err := s.l.q.TakeBack(ctx, db.TakeBackParams{TurnID: key.Turn, CallID: key.Call, Seen: *r.Token, DueAfter: s.l.laterDue()})
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil // it was finished or extended meanwhile
	}
	if err != nil {
		return nil, fmt.Errorf("take back a call: %w", err)
	}
	s.log.Info().Str("conversation", key.Conversation).Str("turn", key.Turn).Str("call", key.Call).Int32("attempt", r.Attempt).
		Msg("lease ran out; the call is released again")
	return &Event{Conversation: row.ConversationID, Turn: row.TurnID, Call: row.CallID, Lane: row.Lane, Seq: row.Seq,
		Generation: row.Generation}, nil
}

// endLost ends a call whose lease ran out, under the token that was seen, and releases the next.
func (s *Sweeper) endLost(ctx context.Context, key call.Key, seen uuid.UUID, o Outcome) (next *Event, err error) {
	var told []byte
	err = s.l.inTx(ctx, "end a lost call", func(q *db.Queries) error {
		if _, err := lock(ctx, q, key.Conversation); err != nil {
			return err
		}
		c, err := q.Call(ctx, db.CallParams{TurnID: key.Turn, CallID: key.Call})
		if err != nil {
			return fmt.Errorf("read the call: %w", err)
		}
		now := time.Now().UTC()
		facts := resultFacts{key: key, tool: c.Tool, seq: c.Seq, attempt: int(c.Attempt), started: now, finished: now, arguments: c.Arguments}
		if c.StartedAt != nil {
			facts.started = c.StartedAt.UTC()
		}
		_, stored, err := s.l.compose(facts, o)
		if err != nil {
			return err
		}
		n, err := q.EndLost(ctx, db.EndLostParams{TurnID: key.Turn, CallID: key.Call, Code: string(o.Code), Result: stored.told,
			FinishedAt: now, Seen: seen})
		if err != nil {
			return fmt.Errorf("end the call: %w", err)
		}
		if n == 0 {
			return ErrFenced
		}
		if _, err := q.CloseOpen(ctx, db.CloseOpenParams{ID: key.Conversation, Generation: c.Generation}); err != nil {
			return fmt.Errorf("count the call: %w", err)
		}
		told = stored.told
		next, err = s.l.releaseNext(ctx, q, key.Conversation, c.Seq)
		return err
	})
	if err != nil {
		return nil, err
	}
	s.teller.TellSoon(ctx, key, told)
	return next, nil
}

// untold tells results whose telling is not on record: of a lost stream these may be many, so that it goes on batch after
// batch, for a while.
func (s *Sweeper) untold(ctx context.Context) error {
	for range mostBatches {
		rows, err := s.l.q.Untold(ctx, sweepBatch)
		if err != nil {
			return fmt.Errorf("look for untold results: %w", err)
		}
		var g errgroup.Group
		g.SetLimit(tellAtOnce)
		var failed atomic.Int32
		for _, r := range rows {
			g.Go(func() error {
				if failed.Load() >= tellAtOnce {
					return nil // it is not about this or that result: the queue is away
				}
				err := s.tell(ctx, r)
				if err != nil {
					failed.Add(1)
				}
				return err
			})
		}
		if err := g.Wait(); err != nil || len(rows) < sweepBatch {
			return err
		}
	}
	return nil
}

const (
	// mostBatches bounds what one sweep publishes or tells again.
	mostBatches = 50
	tellAtOnce  = 32
	// contentsAtOnce bounds the replaced contents that one sweep drops.
	contentsAtOnce = 20
)

func (s *Sweeper) tell(ctx context.Context, r db.UntoldRow) error {
	key := call.Key{Conversation: r.ConversationID, Turn: r.TurnID, Call: r.CallID}
	result := r.Result
	if result == nil {
		var err error
		result, err = DroppedResult(key, r.Tool, r.Seq, deref(r.Status), r.Code, int(r.Attempt), r.ResultRef, r.AcceptedAt, r.FinishedAt)
		if err != nil {
			return err
		}
	}
	return s.teller.Tell(ctx, key, result)
}

// purge removes the results of deleted conversations from the stream.
func (s *Sweeper) purge(ctx context.Context) error {
	ids, err := s.l.q.PurgesDue(ctx, sweepBatch)
	if err != nil {
		return fmt.Errorf("look for purges: %w", err)
	}
	for _, id := range ids {
		if err := s.Purge(ctx, id); err != nil {
			return err
		}
	}
	return nil
}

// Purge removes one deleted conversation's results from the stream and records that.
func (s *Sweeper) Purge(ctx context.Context, conversation string) error {
	if err := s.bus.PurgeConversation(ctx, conversation); err != nil {
		return err
	}
	if err := s.l.q.MarkPurged(ctx, conversation); err != nil {
		return fmt.Errorf("record the purge: %w", err)
	}
	return nil
}

// retellWithin bounds the marking of what is to be told again, which may be all that a whole day told.
const retellWithin = "10min"

// RetellLost marks for telling what a stream made at the given time, with its last sequence, cannot hold: it was told
// into a stream that is gone, or past the end of this one.
func (s *Sweeper) RetellLost(ctx context.Context, stream time.Time, lastSeq int64) error {
	var n int64
	err := s.l.inTx(ctx, "look for tellings that were lost", func(q *db.Queries) (err error) {
		if err = q.AllowLongScan(ctx, retellWithin); err != nil {
			return err
		}
		if err = q.MeetStream(ctx, stream); err != nil {
			return err
		}
		n, err = q.ForgetTold(ctx, db.ForgetToldParams{Stream: stream, LastSeq: lastSeq, Kept: s.l.cfg.Kept.Seconds()})
		return err
	})
	if err != nil {
		return err
	}
	if n > 0 {
		s.log.Info().Int64("results", n).Msg("the stream lost results; they are told again")
	}
	// Looks that had to wait longer and longer while the queue was away are due at once.
	if _, err := s.l.q.HurryReleased(ctx); err != nil {
		return fmt.Errorf("hurry calls that nobody took: %w", err)
	}
	if _, err := s.l.q.HurryUntold(ctx); err != nil {
		return fmt.Errorf("hurry untold results: %w", err)
	}
	return nil
}

// prune keeps each conversation's history within its bound, oldest first out, and drops staged bytes nobody came for.
func (s *Sweeper) prune(ctx context.Context) error {
	if err := s.l.q.DropOldStaged(ctx); err != nil {
		return fmt.Errorf("drop old staged bytes: %w", err)
	}
	if _, err := s.l.q.DropDueContents(ctx, contentsAtOnce); err != nil {
		return fmt.Errorf("drop contents that were replaced: %w", err)
	}
	return s.l.pruneHistories(ctx)
}
