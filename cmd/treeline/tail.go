package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"treeline/internal/call"
	"treeline/internal/role"
)

type tailCommand struct {
	target
	Token           string `help:"Token of a turn: its results and progress come over HTTP." env:"TREELINE_TOKEN" placeholder:"TOKEN"`
	NATSURL         string `name:"nats-url" help:"A NATS server: the results and progress of one conversation, or of all." env:"TREELINE_NATS_URL" placeholder:"URL"`
	NATSCredentials string `name:"nats-credentials" help:"File with NATS credentials." env:"TREELINE_NATS_CREDENTIALS" placeholder:"FILE"`
	JSON            bool   `name:"json" help:"Print each as it came, one JSON object a line."`
	Conversation    string `arg:"" optional:"" help:"With --nats-url: the conversation (default: all)."`
}

// Run prints what comes until it is told to stop.
func (c *tailCommand) Run(ctx context.Context, out io.Writer) error {
	switch {
	case c.NATSURL != "":
		return c.overNATS(ctx, out)
	case c.Token == "":
		return errors.New("say what to follow: --token of a turn, or --nats-url")
	case c.Conversation != "":
		return errors.New("a token is of one turn: name a conversation with --nats-url alone")
	}
	return c.overHTTP(ctx, out)
}

func (c *tailCommand) overNATS(ctx context.Context, out io.Writer) error {
	conversation := "*"
	if c.Conversation != "" {
		if !call.ValidID(c.Conversation) {
			return fmt.Errorf("the conversation %q: an id is 1 to 64 of A-Z, a-z, 0-9, _ and -", c.Conversation)
		}
		conversation = c.Conversation
	}
	if err := role.CheckURL("TREELINE_NATS_URL", c.NATSURL); err != nil {
		return err
	}
	options := []nats.Option{nats.Name("treeline tail"), nats.MaxReconnects(-1)}
	if c.NATSCredentials != "" {
		options = append(options, nats.UserCredentials(c.NATSCredentials))
	}
	conn, err := nats.Connect(c.NATSURL, options...)
	if err != nil {
		return fmt.Errorf("reach the NATS server: %w", err)
	}
	defer conn.Close()
	messages := make(chan *nats.Msg, 1024)
	for _, kind := range []string{"results", "progress"} {
		if _, err := conn.ChanSubscribe("treeline."+kind+"."+conversation+".>", messages); err != nil {
			return fmt.Errorf("subscribe to %s: %w", kind, err)
		}
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case m := <-messages:
			kind := "progress"
			if strings.HasPrefix(m.Subject, "treeline.results.") {
				kind = "result"
			}
			c.print(out, kind, m.Data)
		}
	}
}

func (c *tailCommand) overHTTP(ctx context.Context, out io.Writer) error {
	response, err := fleetURL{url: c.URL, bearer: c.Token}.send(ctx, http.MethodGet, "/v1/events", nil, nil)
	if err != nil {
		return fmt.Errorf("watch the turn: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		p := &problem{}
		if err := json.NewDecoder(response.Body).Decode(p); err != nil {
			p = &problem{Status: response.StatusCode, Code: http.StatusText(response.StatusCode)}
		}
		return fmt.Errorf("watch the turn: %w", p)
	}
	lines := bufio.NewReader(response.Body)
	kind := ""
	for {
		line, err := lines.ReadString('\n')
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("watch the turn: the dispatcher ended the stream: %w", err)
		}
		line = strings.TrimRight(line, "\r\n")
		if value, ok := strings.CutPrefix(line, "event: "); ok {
			kind = value
		}
		if value, ok := strings.CutPrefix(line, "data: "); ok {
			c.print(out, kind, []byte(value))
		}
	}
}

// told is what is shown of a result or a piece of progress.
type told struct {
	CallID, TurnID, ConversationID, Tool string
	Seq                                  int64
	Status, Code                         string
	Changes                              call.Changes
	State, Stream, Text                  string
	At, FinishedAt                       time.Time
}

func (c *tailCommand) print(out io.Writer, kind string, data []byte) {
	if c.JSON {
		fmt.Fprintf(out, "%s\n", data)
		return
	}
	var t told
	if err := json.Unmarshal(data, &t); err != nil {
		fmt.Fprintf(out, "%s that cannot be read: %v\n", kind, err)
		return
	}
	fmt.Fprintln(out, t.line(kind))
}

// line tells a result or a piece of progress in one line.
func (t told) line(kind string) string {
	at := t.At
	if kind == "result" {
		at = t.FinishedAt
	}
	clock := "        "
	if !at.IsZero() {
		clock = at.Local().Format(time.TimeOnly)
	}
	words := []string{clock, t.ConversationID + "/" + t.TurnID + "/" + t.CallID}
	if t.Tool != "" {
		words = append(words, t.Tool)
	}
	if kind != "result" {
		if t.State != "" {
			words = append(words, t.State)
		}
		if t.Text != "" {
			words = append(words, strings.TrimSpace(t.Stream+" "+fmt.Sprintf("%q", t.Text)))
		}
		return strings.Join(words, " ")
	}
	words = append(words, fmt.Sprintf("seq %d", t.Seq), strings.TrimSpace(t.Status+" "+t.Code))
	for _, change := range []struct {
		mark  string
		paths []string
	}{{"+", t.Changes.Created}, {"~", t.Changes.Modified}, {"-", t.Changes.Deleted}} {
		for _, path := range change.paths {
			words = append(words, change.mark+path)
		}
	}
	return strings.Join(words, " ")
}
