package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/google/uuid"

	"treeline/internal/call"
)

type callCommand struct {
	target
	portalKey
	Token        string        `help:"Token of a turn." env:"TREELINE_TOKEN" placeholder:"TOKEN"`
	Conversation string        `help:"With the portal's key: the conversation in which a turn is opened for this one call. It is made if it is not there." placeholder:"ID"`
	User         string        `help:"With the portal's key: the caller." default:"operator" placeholder:"NAME"`
	Department   string        `help:"With the portal's key: the caller's department." default:"operators" placeholder:"NAME"`
	Vision       bool          `help:"With the portal's key: the caller sees pictures."`
	CallID       string        `name:"call-id" help:"The call's id; the same call under the same id is done once (default: made up)." placeholder:"ID"`
	Wait         time.Duration `help:"How long to wait for the result." default:"10m" placeholder:"TIME"`
	JSON         bool          `name:"json" help:"Print the whole result as JSON."`
	Tool         string        `arg:"" help:"The tool."`
	Arguments    string        `arg:"" optional:"" help:"Its arguments as JSON; - reads them from standard input." default:"{}"`
}

// Help is shown below the flags.
func (c *callCommand) Help() string {
	return `Prints the text that a model would be shown. The exit code is 0 for a result that is ok, 3 for one that was refused or failed, and
1 where there is no result.

  treeline call --token "$TOKEN" read_file '{"path":"deck.html"}'
  treeline call --key-file DIR/portal-key --conversation k1 list_files`
}

// errNotOK says that there is a result, printed already, that is not ok.
var errNotOK = errors.New("the result is not ok")

// Run calls the tool, waits, and prints the result.
func (c *callCommand) Run(ctx context.Context, out io.Writer) (err error) {
	arguments, err := c.arguments()
	if err != nil {
		return err
	}
	key, err := c.portalKey.get()
	if err != nil {
		return err
	}
	at := fleetURL{url: c.URL, bearer: c.Token}
	if c.Token == "" {
		if key == "" || c.Conversation == "" {
			return errNoCredential
		}
		portal := fleetURL{url: c.URL, bearer: key}
		turnID, token, err := portal.openTurn(ctx, c.Conversation, c.order())
		if err != nil {
			return err
		}
		at.bearer = token
		defer func() { err = errors.Join(err, portal.closeTurn(context.WithoutCancel(ctx), turnID)) }()
	}
	id := c.CallID
	if id == "" {
		id = uuid.NewString()
	}
	waiting, cancel := context.WithTimeout(ctx, c.Wait)
	defer cancel()
	result, err := at.call(waiting, id, c.Tool, arguments)
	if err != nil {
		return err
	}
	return c.print(out, result)
}

func (c *callCommand) order() turnOrder {
	order := turnOrder{Tools: []string{c.Tool}, ExpiresInSeconds: int64(c.Wait/time.Second) + 60}
	order.Caller.User, order.Caller.Department, order.Model.Vision = c.User, c.Department, c.Vision
	return order
}

func (c *callCommand) arguments() (json.RawMessage, error) {
	text := []byte(c.Arguments)
	if c.Arguments == "-" {
		var err error
		if text, err = io.ReadAll(os.Stdin); err != nil {
			return nil, fmt.Errorf("read the arguments: %w", err)
		}
	}
	if !json.Valid(text) {
		return nil, errors.New("the arguments are not valid JSON")
	}
	return text, nil
}

func (c *callCommand) print(out io.Writer, result call.Result) error {
	if c.JSON {
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(result); err != nil {
			return fmt.Errorf("print the result: %w", err)
		}
	} else {
		fmt.Fprintln(out, strings.TrimSuffix(shown(result), "\n"))
	}
	if result.Status != call.OK {
		return fmt.Errorf("%s %s: %w", result.Status, result.Code, errNotOK)
	}
	return nil
}

// shown is what people see of a result's content: its text, and a line for each picture.
func shown(result call.Result) string {
	var b strings.Builder
	for _, block := range result.Content {
		if block.Type == "text" {
			b.WriteString(strings.TrimSuffix(block.Text, "\n") + "\n")
			continue
		}
		fmt.Fprintf(&b, "[%s, %d bytes]\n", block.MIMEType, len(block.Data))
	}
	return b.String()
}
