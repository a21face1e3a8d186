// Package client is for orchestrators: programs that drive a model and carry its tool calls to Treeline. A Client makes
// the calls of one turn over HTTP; TrimReplay shortens a message list by what the calls' results say need not be sent to
// the model again.
package client

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"treeline/internal/call"
)

// The words of a result, as every way in speaks them.
type (
	// Result answers a call.
	Result = call.Result
	// Content is one block of a result for the model: text, or an image.
	Content = call.Content
	// Changes are the paths that a call created, modified and deleted.
	Changes = call.Changes
	// Status is ok, refused or failed.
	Status = call.Status
	// Code says why a call was refused or failed; it is empty for one that is ok.
	Code = call.Code
)

// The statuses of a result.
const (
	OK      = call.OK
	Refused = call.Refused
	Failed  = call.Failed
)

// Call is one tool call. Its ID is chosen by the caller and unique in the turn: under the same ID the same call is done
// once, however often it is sent. An empty ID is made up. Arguments are encoded as JSON; nil is none.
type Call struct {
	ID        string
	Tool      string
	Arguments any
}

// Tool is a tool that the turn was offered.
type Tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"inputSchema"`
}

// Problem is an error that Treeline answered with: an RFC 9457 problem document. A refusal by a tool is none, but a Result.
type Problem struct {
	Status int    `json:"status"`
	Code   string `json:"code"`
	Title  string `json:"title"`
	Detail string `json:"detail"`
}

func (p *Problem) Error() string {
	return fmt.Sprintf("treeline: %d %s: %s", p.Status, p.Code, p.Detail)
}

const (
	// stepWait is how long one request waits for a result; a longer wait is several.
	stepWait = 60 * time.Second
	// firstPause and longestPause bound the time between two tries; tries is how often a request that did not get through
	// is sent.
	firstPause   = 100 * time.Millisecond
	longestPause = 2 * time.Second
	tries        = 6
	// answerBytes bounds an answer that is read: results are told in full, pictures included.
	answerBytes = 256 << 20
)

// Client makes the calls of one turn. It is safe for concurrent use.
type Client struct {
	base  string
	token string
	http  *http.Client
}

// New makes a client of the Treeline at base, such as http://127.0.0.1:8080, for the turn that the token opens. A nil
// HTTP client is one of its own without a timeout: contexts bound the waiting.
func New(base, token string, h *http.Client) *Client {
	if h == nil {
		h = &http.Client{}
	}
	return &Client{base: strings.TrimRight(base, "/"), token: token, http: h}
}

// Tools gives the tools that the turn was offered.
func (c *Client) Tools(ctx context.Context) ([]Tool, error) {
	body, _, err := c.send(ctx, http.MethodGet, "/v1/tools", nil, nil)
	if err != nil {
		return nil, err
	}
	var list struct {
		Tools []Tool `json:"tools"`
	}
	if err := json.Unmarshal(body, &list); err != nil {
		return nil, fmt.Errorf("treeline: read the tools: %w", err)
	}
	return list.Tools, nil
}

// Call makes a call and waits for its result, for as long as ctx lets it. What does not get through is sent again, which
// is safe: a call is done once. The error is a *Problem, or that of the network or of ctx; the call may then have been
// accepted, and Wait asks for it.
func (c *Client) Call(ctx context.Context, request Call) (Result, error) {
	arguments := []byte("{}")
	if request.Arguments != nil {
		var err error
		if arguments, err = json.Marshal(request.Arguments); err != nil {
			return Result{}, fmt.Errorf("treeline: encode the arguments of %s: %w", request.Tool, err)
		}
	}
	if request.ID == "" {
		request.ID = "call-" + rand.Text()
	}
	headers := http.Header{"Idempotency-Key": {request.ID}, "Content-Type": {"application/json"},
		"Prefer": {"wait=" + strconv.Itoa(int(stepWait/time.Second))}}
	for {
		// Sent again under its id, the call is not made again but waited for.
		result, done, err := c.result(ctx, http.MethodPost, "/v1/tools/"+url.PathEscape(request.Tool), headers, arguments)
		if done || err != nil {
			return result, err
		}
		if err := sleep(ctx, firstPause); err != nil { // a server that stops ends its waits early
			return Result{}, err
		}
	}
}

// Wait asks for the result of a call until it is done, for as long as ctx lets it. It is a *Problem of status 404 where
// the turn has no such call.
func (c *Client) Wait(ctx context.Context, callID string) (Result, error) {
	pause := firstPause
	for {
		result, done, err := c.result(ctx, http.MethodGet, "/v1/calls/"+url.PathEscape(callID), nil, nil)
		if done || err != nil {
			return result, err
		}
		if err := sleep(ctx, pause); err != nil {
			return Result{}, err
		}
		pause = min(2*pause, longestPause)
	}
}

// Cancel cancels a call and gives its result: cancelled, or what it was if it was done already.
func (c *Client) Cancel(ctx context.Context, callID string) (Result, error) {
	result, done, err := c.result(ctx, http.MethodPost, "/v1/calls/"+url.PathEscape(callID)+"/cancel", nil, nil)
	if done || err != nil {
		return result, err
	}
	return c.Wait(ctx, callID) // it runs, and ends soon
}

// result sends a request that answers with a result; done is false where that is still to come.
func (c *Client) result(ctx context.Context, method, path string, headers http.Header, body []byte) (r Result, done bool, err error) {
	answer, status, err := c.send(ctx, method, path, headers, body)
	if err != nil || status == http.StatusAccepted {
		return Result{}, false, err
	}
	if err := json.Unmarshal(answer, &r); err != nil {
		return Result{}, false, fmt.Errorf("treeline: read the result: %w", err)
	}
	return r, true, nil
}

// send makes a request, and makes it again where it did not get through or Treeline cannot serve at the moment.
func (c *Client) send(ctx context.Context, method, path string, headers http.Header, body []byte) (answer []byte, status int, err error) {
	pause := firstPause
	for try := 1; ; try++ {
		answer, status, err = c.once(ctx, method, path, headers, body)
		if !passing(err) || try == tries || ctx.Err() != nil {
			return answer, status, err
		}
		if sleep(ctx, pause) != nil {
			return answer, status, err
		}
		pause = min(2*pause, longestPause)
	}
}

// passing reports whether trying again may help.
func passing(err error) bool {
	var p *Problem
	if errors.As(err, &p) {
		return p.Status == http.StatusServiceUnavailable || p.Status == http.StatusBadGateway || p.Status == http.StatusGatewayTimeout
	}
	return err != nil
}

func (c *Client) once(ctx context.Context, method, path string, headers http.Header, body []byte) ([]byte, int, error) {
	r, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(body))
	if err != nil {
		return nil, 0, fmt.Errorf("treeline: make the request: %w", err)
	}
	for name, values := range headers {
		r.Header[name] = values
	}
	r.Header.Set("Authorization", "Bearer "+c.token)
	resp, err := c.http.Do(r)
	if err != nil {
		return nil, 0, fmt.Errorf("treeline: %w", err)
	}
	defer func() { _ = resp.Body.Close() }() // what was read counts
	answer, err := io.ReadAll(io.LimitReader(resp.Body, answerBytes))
	if err != nil {
		return nil, 0, fmt.Errorf("treeline: read the answer: %w", err)
	}
	if resp.StatusCode >= 300 {
		return nil, 0, problem(resp, answer)
	}
	return answer, resp.StatusCode, nil
}

func problem(resp *http.Response, body []byte) *Problem {
	p := &Problem{}
	if json.Unmarshal(body, p) != nil || p.Code == "" {
		p = &Problem{Title: resp.Status, Detail: "the answer is no problem document"}
	}
	p.Status = resp.StatusCode
	return p
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
