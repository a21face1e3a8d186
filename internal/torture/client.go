package torture

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"treeline/internal/call"
)

// Client sends calls as an orchestrator does, over HTTP to one dispatcher after another and over NATS to whichever
// answers. It tries nothing again by itself.
type Client struct {
	http *http.Client
	urls []string
	next atomic.Uint64
	key  string
	nats *nats.Conn
}

// errUnsure says that it is not known whether a request was done: it is to be sent again.
var errUnsure = errors.New("no certain answer")

// NewClient makes a client of dispatchers at the given URLs, and of the NATS server, which need not run yet.
func NewClient(urls []string, key, natsURL string) (*Client, error) {
	nc, err := nats.Connect(natsURL, nats.MaxReconnects(-1), nats.RetryOnFailedConnect(true), nats.ReconnectWait(50*time.Millisecond),
		nats.ReconnectJitter(10*time.Millisecond, 10*time.Millisecond), nats.ReconnectBufSize(-1))
	if err != nil {
		return nil, fmt.Errorf("connect the client to NATS: %w", err)
	}
	transport := &http.Transport{MaxIdleConnsPerHost: 64, IdleConnTimeout: 10 * time.Second}
	return &Client{http: &http.Client{Transport: transport}, urls: urls, key: key, nats: nc}, nil
}

// Close ends the client's connections.
func (c *Client) Close() {
	c.nats.Close()
	c.http.CloseIdleConnections()
}

// Request is one call as it is sent.
type Request struct {
	Token     string          `json:"-"`
	CallID    string          `json:"callId"`
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments"`
}

// Reply is what came back for a call.
type Reply struct {
	// Accepted: the call is in the ledger; Seq is its place, where it was told.
	Accepted bool
	Seq      int64
	// Result is set where the call is done.
	Result *call.Result
	// Refusal is an answer of the moment, or one at the door.
	Refusal call.Code
}

// do sends one HTTP request to the next dispatcher. Anything but a certain answer is errUnsure.
func (c *Client) do(ctx context.Context, method, path, token string, body any, headers map[string]string) (int, []byte, error) {
	var in io.Reader
	if body != nil {
		b, is := body.(json.RawMessage)
		if !is {
			var err error
			if b, err = json.Marshal(body); err != nil {
				return 0, nil, fmt.Errorf("encode a request: %w", err)
			}
		}
		in = bytes.NewReader(b)
	}
	base := c.urls[c.next.Add(1)%uint64(len(c.urls))]
	req, err := http.NewRequestWithContext(ctx, method, base+path, in)
	if err != nil {
		return 0, nil, fmt.Errorf("make a request: %w", err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	for name, value := range headers {
		req.Header.Set(name, value)
	}
	res, err := c.http.Do(req)
	if err != nil {
		return 0, nil, errors.Join(errUnsure, err)
	}
	defer func() { _ = res.Body.Close() }()
	out, err := io.ReadAll(res.Body)
	if err != nil {
		return 0, nil, errors.Join(errUnsure, err)
	}
	if res.StatusCode == http.StatusServiceUnavailable {
		return 0, nil, fmt.Errorf("%w: %s", errUnsure, out)
	}
	if res.StatusCode >= 500 {
		return 0, nil, fmt.Errorf("%s %s answered %d: %s", method, path, res.StatusCode, out)
	}
	return res.StatusCode, out, nil
}

// SendHTTP sends a call and waits at most wait for its result.
func (c *Client) SendHTTP(ctx context.Context, r Request, wait time.Duration) (Reply, error) {
	ctx, cancel := context.WithTimeout(ctx, wait+3*time.Second)
	defer cancel()
	status, body, err := c.do(ctx, http.MethodPost, "/v1/tools/"+url.PathEscape(r.Tool), r.Token, r.Arguments, map[string]string{
		"Idempotency-Key": r.CallID, "Content-Type": "application/json", "Prefer": fmt.Sprintf("wait=%d", int(wait.Seconds())),
	})
	if err != nil {
		return Reply{}, err
	}
	return readReply(status, body)
}

// Result asks for a call's result over HTTP.
func (c *Client) Result(ctx context.Context, token, callID string) (Reply, error) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	status, body, err := c.do(ctx, http.MethodGet, "/v1/calls/"+callID, token, nil, nil)
	if err != nil {
		return Reply{}, err
	}
	return readReply(status, body)
}

// Cancel asks for a call to be cancelled.
func (c *Client) Cancel(ctx context.Context, token, callID string) error {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	_, _, err := c.do(ctx, http.MethodPost, "/v1/calls/"+callID+"/cancel", token, nil, nil)
	return err
}

func readReply(status int, body []byte) (Reply, error) {
	switch status {
	case http.StatusOK:
		var res call.Result
		if err := json.Unmarshal(body, &res); err != nil {
			return Reply{}, fmt.Errorf("read a result: %w", err)
		}
		if res.ResultRef == "" {
			return Reply{Refusal: res.Code}, nil
		}
		return Reply{Accepted: true, Seq: res.Seq, Result: &res}, nil
	case http.StatusAccepted:
		var pending struct{ Seq int64 }
		if err := json.Unmarshal(body, &pending); err != nil {
			return Reply{}, fmt.Errorf("read where a call stands: %w", err)
		}
		return Reply{Accepted: true, Seq: pending.Seq}, nil
	}
	var p struct{ Code call.Code }
	if err := json.Unmarshal(body, &p); err != nil || p.Code == "" {
		return Reply{}, fmt.Errorf("status %d with no problem document: %s", status, body)
	}
	return Reply{Refusal: p.Code}, nil
}

// SendNATS sends one call, or several as one step, and returns once they are accepted or refused.
func (c *Client) SendNATS(ctx context.Context, requests ...Request) ([]Reply, error) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	message := map[string]any{"token": requests[0].Token}
	if len(requests) == 1 {
		message["callId"], message["tool"], message["arguments"] = requests[0].CallID, requests[0].Tool, requests[0].Arguments
	} else {
		message["calls"] = requests
	}
	b, err := json.Marshal(message)
	if err != nil {
		return nil, fmt.Errorf("encode a request: %w", err)
	}
	m, err := c.nats.RequestWithContext(ctx, "treeline.call", b)
	if err != nil {
		return nil, errors.Join(errUnsure, err)
	}
	var answer struct {
		Accepted bool
		Seq      []int64
		CallID   string
		Code     call.Code
		Content  []call.Content
	}
	if err := json.Unmarshal(m.Data, &answer); err != nil {
		return nil, fmt.Errorf("read an answer: %w", err)
	}
	out := make([]Reply, len(requests))
	switch {
	case answer.Accepted && len(answer.Seq) != len(requests):
		return nil, fmt.Errorf("%d calls were accepted with %d places in the order", len(requests), len(answer.Seq))
	case answer.Code == call.Internal:
		return nil, fmt.Errorf("the request failed: %s", call.TextOf(answer.Content))
	case !answer.Accepted && answer.Code == "":
		return nil, fmt.Errorf("neither accepted nor refused: %s", m.Data)
	}
	for i := range out {
		if !answer.Accepted {
			out[i].Refusal = answer.Code
			continue
		}
		out[i].Accepted, out[i].Seq = true, answer.Seq[i]
	}
	return out, nil
}

// portal sends a request under the portal's key and reads the answer into out, trying again while there is no certain
// answer.
func (c *Client) portal(ctx context.Context, method, path string, in, out any) (int, error) {
	status, body, err := c.portalBody(ctx, method, path, in, nil)
	if err != nil {
		return 0, err
	}
	if out != nil && status < 300 {
		if err := json.Unmarshal(body, out); err != nil {
			return status, fmt.Errorf("read the answer to %s %s: %w", method, path, err)
		}
	}
	return status, nil
}

// portalBody sends a request under the portal's key, trying again while there is no certain answer.
func (c *Client) portalBody(ctx context.Context, method, path string, in any, headers map[string]string) (int, []byte, error) {
	for {
		once, cancel := context.WithTimeout(ctx, 5*time.Second)
		status, body, err := c.do(once, method, path, c.key, in, headers)
		cancel()
		switch {
		case errors.Is(err, errUnsure) && ctx.Err() == nil:
			if sleep(ctx, 100*time.Millisecond) {
				continue
			}
			return 0, nil, ctx.Err()
		case err != nil:
			return 0, nil, err
		}
		return status, body, nil
	}
}

// sleep waits, and reports whether it was not cut short.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

// PutConversation makes a conversation.
func (c *Client) PutConversation(ctx context.Context, id string) error {
	return c.expect(c.portal(ctx, http.MethodPut, "/v1/conversations/"+id, nil, nil))(http.StatusOK, http.StatusCreated, http.StatusNoContent)
}

// DeleteConversation deletes a conversation.
func (c *Client) DeleteConversation(ctx context.Context, id string) error {
	return c.expect(c.portal(ctx, http.MethodDelete, "/v1/conversations/"+id, nil, nil))(http.StatusOK, http.StatusNoContent)
}

// RestoreConversation restores a deleted conversation.
func (c *Client) RestoreConversation(ctx context.Context, id string) error {
	return c.expect(c.portal(ctx, http.MethodPost, "/v1/conversations/"+id+"/restore", nil, nil))(http.StatusOK, http.StatusNoContent)
}

// newTurn is what a turn is opened with.
type newTurn struct {
	ID                                    string
	Tools, Collections, Skills, Knowledge []string
}

// OpenTurn opens a turn of a conversation that is offered the tools, and gives its token. A turn of that id that is there
// already, because an answer was lost, is replaced by one of another id.
func (c *Client) OpenTurn(ctx context.Context, conversation, id string, tools []string) (turnID, token string, err error) {
	return c.openTurn(ctx, conversation, newTurn{ID: id, Tools: tools})
}

func (c *Client) openTurn(ctx context.Context, conversation string, t newTurn) (turnID, token string, err error) {
	body := map[string]any{"caller": map[string]any{"user": asker, "department": department, "collections": t.Collections}, "tools": t.Tools}
	for name, list := range map[string][]string{"skills": t.Skills, "knowledge": t.Knowledge} {
		if list != nil {
			body[name] = list
		}
	}
	if t.Collections == nil {
		body["caller"] = map[string]any{"user": asker, "department": department}
	}
	for n := 0; ; n++ {
		turnID = t.ID
		if n > 0 {
			turnID = fmt.Sprintf("%s-again%d", t.ID, n)
		}
		body["turnId"] = turnID
		var out struct{ TurnID, Token string }
		status, err := c.portal(ctx, http.MethodPost, "/v1/conversations/"+conversation+"/turns", body, &out)
		switch {
		case err != nil:
			return "", "", err
		case status == http.StatusConflict:
			continue
		case status >= 300 || out.Token == "":
			return "", "", fmt.Errorf("open a turn of %s: status %d", conversation, status)
		}
		return turnID, out.Token, nil
	}
}

// CloseTurn closes a turn.
func (c *Client) CloseTurn(ctx context.Context, id string) error {
	return c.expect(c.portal(ctx, http.MethodPost, "/v1/turns/"+id+"/close", nil, nil))(http.StatusOK, http.StatusNoContent)
}

// File reads a file's bytes.
func (c *Client) File(ctx context.Context, conversation, path string) ([]byte, error) {
	body, there, err := c.fileIfThere(ctx, conversation, path)
	if err == nil && !there {
		err = fmt.Errorf("read %s of %s: there is no such file", path, conversation)
	}
	return body, err
}

// fileIfThere reads a file's bytes; there says whether there is such a file.
func (c *Client) fileIfThere(ctx context.Context, conversation, path string) (content []byte, there bool, err error) {
	status, body, err := c.portalBody(ctx, http.MethodGet, filePath(conversation, path), nil, nil)
	switch {
	case err != nil:
		return nil, false, err
	case status == http.StatusNotFound:
		return nil, false, nil
	case status != http.StatusOK:
		return nil, false, fmt.Errorf("read %s of %s: status %d: %s", path, conversation, status, body)
	}
	return body, true, nil
}

func filePath(conversation, path string) string {
	return "/v1/conversations/" + conversation + "/files/" + (&url.URL{Path: path}).EscapedPath()
}

func (c *Client) expect(status int, err error) func(...int) error {
	return func(good ...int) error {
		if err != nil {
			return err
		}
		for _, g := range good {
			if status == g {
				return nil
			}
		}
		return fmt.Errorf("the portal answered %d", status)
	}
}
