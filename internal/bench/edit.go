package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"treeline/internal/devenv"
)

// Target is a fleet that runs, and the servers below it.
type Target struct {
	URL, PortalKey string
	DatabaseURL    string
	NATS           *nats.Conn
}

// Edit measures n edit calls over HTTP beside n of the floor, one after the other in turns, and each hop of the floor on
// its own beside what another program or a bare use makes of it. progress is told how far it is.
func Edit(ctx context.Context, t Target, n int, progress io.Writer) ([]Row, error) {
	c, err := newClient(ctx, t)
	if err != nil {
		return nil, err
	}
	result, err := c.edit(ctx, 0)
	if err != nil {
		return nil, err
	}
	f, err := newFloor(ctx, t.DatabaseURL, t.NATS, result)
	if err != nil {
		return nil, err
	}
	rows, err := measure(ctx, c, f, n, progress)
	if err == nil {
		var hops []Row
		hops, err = f.hops(ctx, t, n, progress)
		rows = append(rows, hops...)
	}
	return rows, errors.Join(err, f.close(context.WithoutCancel(ctx)))
}

func measure(ctx context.Context, c *client, f *floor, n int, progress io.Writer) ([]Row, error) {
	row := Row{Name: "edit_file over HTTP", Peer: "its floor: HTTP, commit, publish, deliver, commit, publish, deliver", Limit: 2.5}
	request := bytes.Repeat([]byte("x"), 200)
	warm := n / 10
	var cold Samples
	for i := range n + warm {
		mine, others := &row.Mine, &row.Others
		if i < warm {
			mine, others = &cold, &cold
		}
		if err := timed(mine, func() error { _, err := c.edit(ctx, i+1); return err }); err != nil {
			return nil, err
		}
		if err := timed(others, func() error { return post(ctx, c.http, f.url+"/call", request) }); err != nil {
			return nil, err
		}
		if i%(max(1, n/5)) == 0 {
			fmt.Fprintf(progress, "edit beside its floor: %d of %d\n", i, n+warm)
		}
	}
	return []Row{row}, nil
}

// hops measures the floor's hops on their own, each in turns with its peer.
func (f *floor) hops(ctx context.Context, t Target, n int, progress io.Writer) ([]Row, error) {
	fmt.Fprintln(progress, "the floor's hops")
	body := bytes.Repeat([]byte("x"), 200)
	h := &http.Client{}
	request := Row{Name: "hop: HTTP request", Peer: "a bare handler on a server of its own"}
	bareURL, stop, err := bareServer(f.message)
	if err != nil {
		return nil, err
	}
	defer stop()
	err = inTurns(n, &request, func() error { return post(ctx, h, f.url+"/nothing", body) },
		func() error { return post(ctx, h, bareURL, body) })
	if err != nil {
		return nil, err
	}
	commit := Row{Name: "hop: one-row commit", Peer: "pgbench, the same statement (mean)", PeerIsOneOnly: true}
	for range n {
		if err := timed(&commit.Mine, func() error { _, err := f.pool.Exec(ctx, floorBare, body); return err }); err != nil {
			return nil, fmt.Errorf("commit: %w", err)
		}
	}
	mean, err := pgbench(ctx, t.DatabaseURL, n)
	if err != nil {
		return nil, err
	}
	commit.Others = Samples{mean}
	publish := Row{Name: "hop: publish and deliver", Peer: "a bare publish, answering a bare request"}
	other, err := newBarePublish(ctx, t.NATS)
	if err != nil {
		return nil, err
	}
	defer other.close(context.WithoutCancel(ctx))
	if err := inTurns(n, &publish, other.viaIterator, other.viaSubscription); err != nil {
		return nil, err
	}
	rows := []Row{request, commit, publish}
	for i := range rows {
		rows[i].Limit = 1.2
	}
	return rows, nil
}

// inTurns measures a thing and its peer n times each, each first half of the time.
func inTurns(n int, row *Row, mine, other func() error) error {
	for i := range n {
		first, second := func() error { return timed(&row.Mine, mine) }, func() error { return timed(&row.Others, other) }
		if i%2 == 1 {
			first, second = second, first
		}
		if err := errors.Join(first(), second()); err != nil {
			return fmt.Errorf("%s: %w", row.Name, err)
		}
	}
	return nil
}

func bareServer(answer []byte) (url string, stop func(), err error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, fmt.Errorf("listen: %w", err)
	}
	server := &http.Server{ReadHeaderTimeout: 10 * time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = w.Write(answer)
	})}
	var served sync.WaitGroup
	served.Go(func() { _ = server.Serve(ln) })
	return "http://" + ln.Addr().String(), func() { _ = server.Close(); served.Wait() }, nil
}

// barePublish is one stream of its own with two consumers.
type barePublish struct {
	nc    *nats.Conn
	js    jetstream.JetStream
	iter  jetstream.MessagesContext
	taken chan error
	sub   *nats.Subscription
}

const bareStream = "BENCH_BARE"

func newBarePublish(ctx context.Context, nc *nats.Conn) (*barePublish, error) {
	b := &barePublish{nc: nc, taken: make(chan error)}
	var err error
	if b.js, err = jetstream.New(nc); err != nil {
		return nil, fmt.Errorf("use JetStream: %w", err)
	}
	_ = b.js.DeleteStream(ctx, bareStream) // of an earlier run, if any
	_, err = b.js.CreateStream(ctx, jetstream.StreamConfig{Name: bareStream, Subjects: []string{"bench.bare.>"}, Storage: jetstream.FileStorage,
		Retention: jetstream.WorkQueuePolicy})
	if err != nil {
		return nil, fmt.Errorf("make a bare stream: %w", err)
	}
	for _, name := range []string{"pull", "fetch"} {
		c, err := b.js.CreateConsumer(ctx, bareStream, jetstream.ConsumerConfig{Durable: name, FilterSubject: "bench.bare." + name,
			AckPolicy: jetstream.AckExplicitPolicy})
		if err != nil {
			return nil, fmt.Errorf("make a bare consumer: %w", err)
		}
		if name == "pull" {
			if b.iter, err = c.Messages(jetstream.PullMaxMessages(1)); err != nil {
				return nil, fmt.Errorf("ask a bare consumer: %w", err)
			}
		}
	}
	if b.sub, err = nc.SubscribeSync(nats.NewInbox()); err != nil {
		return nil, fmt.Errorf("subscribe: %w", err)
	}
	go b.take()
	return b, nil
}

func (b *barePublish) take() {
	for {
		m, err := b.iter.Next()
		if errors.Is(err, jetstream.ErrMsgIteratorClosed) {
			return
		}
		if errors.Is(err, jetstream.ErrNoHeartbeat) {
			continue // the machine is busy; the request stands
		}
		b.taken <- err
		if err == nil {
			_ = m.Ack()
		}
	}
}

// viaIterator is the hop as the floor and the fleet make it: a worker waits for the event.
func (b *barePublish) viaIterator() error {
	if err := b.nc.Publish("bench.bare.pull", []byte("1")); err != nil {
		return err
	}
	return <-b.taken
}

// viaSubscription is the protocol itself: a request for one message, answered on an inbox.
func (b *barePublish) viaSubscription() error {
	if err := b.nc.PublishRequest("$JS.API.CONSUMER.MSG.NEXT."+bareStream+".fetch", b.sub.Subject, []byte(`{"batch":1,"expires":5000000000}`)); err != nil {
		return err
	}
	if err := b.nc.Publish("bench.bare.fetch", []byte("1")); err != nil {
		return err
	}
	m, err := b.sub.NextMsg(5 * time.Second)
	if err != nil {
		return fmt.Errorf("take a bare message: %w", err)
	}
	return m.Respond([]byte("+ACK"))
}

func (b *barePublish) close(ctx context.Context) {
	b.iter.Stop()
	_ = b.sub.Unsubscribe()
	_ = b.js.DeleteStream(ctx, bareStream) // a stream that stays is deleted by the next run
}

// pgbench gives the mean latency of the same one-row commit by one client of Postgres's own benchmark.
func pgbench(ctx context.Context, url string, n int) (time.Duration, error) {
	bin, err := devenv.FindPostgres(ctx)
	if err != nil {
		return 0, fmt.Errorf("find pgbench: %w", err)
	}
	dir, err := os.MkdirTemp("", "treeline-bench-")
	if err != nil {
		return 0, fmt.Errorf("make a folder for pgbench: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	script := filepath.Join(dir, "commit.sql")
	sql := fmt.Sprintf("INSERT INTO bench_floor (state, body) VALUES ('bare', '%s');\n", strings.Repeat("x", 200))
	if err := os.WriteFile(script, []byte(sql), 0o600); err != nil {
		return 0, fmt.Errorf("write pgbench's script: %w", err)
	}
	cmd := exec.CommandContext(ctx, filepath.Join(bin.Folder, "pgbench"), "-n", "-M", "prepared", "-c", "1", "-t", strconv.Itoa(n), "-f", script, url)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("run pgbench: %w: %s", err, lastLine(out))
	}
	for line := range strings.Lines(string(out)) {
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), "latency average = "); ok {
			f, err := strconv.ParseFloat(strings.TrimSuffix(v, " ms"), 64)
			if err != nil {
				return 0, fmt.Errorf("read pgbench's answer: %w", err)
			}
			return time.Duration(f * float64(time.Millisecond)), nil
		}
	}
	return 0, errors.New("pgbench printed no latency")
}

func lastLine(b []byte) string {
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	return lines[len(lines)-1]
}

// client edits one file of one conversation, again and again.
type client struct {
	http  *http.Client
	url   string
	token string
}

// benchFile is 5 KB, of which each edit changes one line.
func benchFile() string {
	return "counter = 0\n" + strings.Repeat("a line of the file that stays as it is while another is edited\n", 80)
}

func newClient(ctx context.Context, t Target) (*client, error) {
	c, err := newTurn(ctx, t, "write_file", "edit_file")
	if err != nil {
		return nil, err
	}
	_, err = c.call(ctx, "write_file", map[string]string{"path": "bench.txt", "content": benchFile()})
	return c, err
}

func (c *client) edit(ctx context.Context, i int) ([]byte, error) {
	b, err := c.do(ctx, http.MethodPost, "/v1/tools/edit_file", c.token, map[string]any{"path": "bench.txt", "edits": []map[string]string{
		{"find": fmt.Sprintf("counter = %d\n", i), "replace": fmt.Sprintf("counter = %d\n", i+1)}}})
	if err == nil && !bytes.Contains(b, []byte(`"status":"ok"`)) {
		err = fmt.Errorf("the edit was not made: %.300s", b)
	}
	return b, err
}

func (c *client) do(ctx context.Context, method, path, key string, body any) ([]byte, error) {
	b, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	return c.request(ctx, method, path, key, b, nil)
}

func (c *client) request(ctx context.Context, method, path, key string, body []byte, headers map[string]string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.url+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+key)
	for name, value := range headers {
		req.Header.Set(name, value)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	out, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode >= 300 {
		err = fmt.Errorf("%s %s: HTTP %d: %.300s", method, path, resp.StatusCode, out)
	}
	return out, err
}

func post(ctx context.Context, h *http.Client, url string, body []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	resp, err := h.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	_, err = io.Copy(io.Discard, resp.Body)
	return err
}
