// Package queue is the transport: JetStream streams and consumers, publishing, consuming with heartbeats, and waiting
// for results. Nothing in it decides anything; the ledger does.
package queue

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// The streams, and the subjects below them. Identifiers hold no dots, so each is one token of a subject.
const (
	CallsStream   = "TREELINE_CALLS"
	ResultsStream = "TREELINE_RESULTS"

	callsPrefix    = "treeline.calls."
	resultsPrefix  = "treeline.results."
	progressPrefix = "treeline.progress."
	cancelPrefix   = "treeline.cancel."
)

// Config is the one place that says how streams and consumers are made.
type Config struct {
	// Replicas of each stream; 1 on a single server.
	Replicas int
	// Kept is how long results stay in the stream.
	Kept time.Duration
	// AckWait is how long a delivery may go without a sign of life before it is delivered again.
	AckWait time.Duration
	// WatchEvery is the time between looks whether the streams are still there; 0 for 5 seconds.
	WatchEvery time.Duration
}

func (c Config) watchEvery() time.Duration {
	if c.WatchEvery > 0 {
		return c.WatchEvery
	}
	return 5 * time.Second
}

// DefaultConfig gives one replica, results kept for 24 hours, and an AckWait of 30 seconds.
func DefaultConfig() Config {
	return Config{Replicas: 1, Kept: 24 * time.Hour, AckWait: 30 * time.Second}
}

// dedupeWindow is how long a result that is told again is recognised by its Nats-Msg-Id.
const dedupeWindow = 2 * time.Minute

func (c Config) streams() []jetstream.StreamConfig {
	return []jetstream.StreamConfig{
		{
			Name: CallsStream, Description: "calls that are ready to be done; the ledger has the calls themselves",
			Subjects: []string{callsPrefix + ">"}, Retention: jetstream.WorkQueuePolicy, Storage: jetstream.FileStorage,
			Replicas: c.Replicas, MaxMsgSize: 64 << 10,
			// An event older than this is of no use: the sweeper publishes another.
			MaxAge: time.Hour,
		},
		{
			Name: ResultsStream, Description: "results of calls, told at least once",
			Subjects: []string{resultsPrefix + ">"}, Retention: jetstream.LimitsPolicy, Storage: jetstream.FileStorage,
			Replicas: c.Replicas, MaxAge: c.Kept, Duplicates: dedupeWindow, AllowDirect: true,
		},
	}
}

func (c Config) consumer(lane string) jetstream.ConsumerConfig {
	return jetstream.ConsumerConfig{
		Durable: lane, Description: "workers of the " + lane + " lane", FilterSubject: callsPrefix + lane + ".>",
		AckPolicy: jetstream.AckExplicitPolicy, AckWait: c.AckWait, MaxDeliver: -1, MaxAckPending: 20_000,
		DeliverPolicy: jetstream.DeliverAllPolicy,
	}
}

// Lanes that have a consumer.
var lanes = [...]string{"file", "code"}

// setUp creates or updates the streams and consumers, and gives the results stream's state.
func setUp(ctx context.Context, js jetstream.JetStream, c Config) (*jetstream.StreamInfo, error) {
	var results jetstream.Stream
	for _, sc := range c.streams() {
		s, err := js.CreateOrUpdateStream(ctx, sc)
		if err != nil {
			return nil, fmt.Errorf("set the stream %s up: %w", sc.Name, err)
		}
		if sc.Name == ResultsStream {
			results = s
		}
	}
	for _, lane := range lanes {
		_, err := js.CreateOrUpdateConsumer(ctx, CallsStream, c.consumer(lane))
		if err != nil && !errors.Is(err, jetstream.ErrConsumerExists) {
			return nil, fmt.Errorf("set the consumer %s up: %w", lane, err)
		}
	}
	info, err := results.Info(ctx)
	if err != nil {
		return nil, fmt.Errorf("look at the stream %s: %w", ResultsStream, err)
	}
	return info, nil
}
