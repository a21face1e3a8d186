package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	"treeline/client"
	"treeline/internal/call"
)

// fleetURL is where a fleet's HTTP is, and whose key or token opens it.
type fleetURL struct {
	url    string
	bearer string
}

// problem is the part of an answer's problem document that people read.
type problem struct {
	Status int    `json:"status"`
	Code   string `json:"code"`
	Title  string `json:"title"`
	Detail string `json:"detail"`
}

func (p *problem) Error() string {
	return strings.TrimSuffix(fmt.Sprintf("%d %s: %s", p.Status, p.Code, p.Detail), ": ")
}

// do sends body, if any, as JSON, and reads the answer into into, if any. An answer that is no success is a *problem.
func (f fleetURL) do(ctx context.Context, method, path string, header http.Header, body, into any) (status int, err error) {
	response, err := f.send(ctx, method, path, header, body)
	if err != nil {
		return 0, err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, fmt.Errorf("read the answer to %s %s: %w", method, path, err)
	}
	if response.StatusCode >= 300 {
		p := &problem{}
		if json.Unmarshal(text, p) != nil || p.Status == 0 {
			p = &problem{Status: response.StatusCode, Code: http.StatusText(response.StatusCode), Detail: strings.TrimSpace(string(text))}
		}
		return response.StatusCode, p
	}
	if into == nil || len(text) == 0 {
		return response.StatusCode, nil
	}
	if err := json.Unmarshal(text, into); err != nil {
		return 0, fmt.Errorf("read the answer to %s %s: %w", method, path, err)
	}
	return response.StatusCode, nil
}

func (f fleetURL) send(ctx context.Context, method, path string, header http.Header, body any) (*http.Response, error) {
	var reader io.Reader
	if body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			return nil, fmt.Errorf("write the body of %s %s: %w", method, path, err)
		}
		reader = bytes.NewReader(encoded)
	}
	request, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(f.url, "/")+path, reader)
	if err != nil {
		return nil, fmt.Errorf("ask %s %s: %w", method, path, err)
	}
	for name, values := range header {
		request.Header[name] = values
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	request.Header.Set("Authorization", "Bearer "+f.bearer)
	return http.DefaultClient.Do(request)
}

// turnOrder is what a turn is opened with.
type turnOrder struct {
	Caller struct {
		User       string `json:"user"`
		Department string `json:"department"`
	} `json:"caller"`
	Tools []string `json:"tools"`
	Model struct {
		Vision bool `json:"vision"`
	} `json:"model"`
	ExpiresInSeconds int64 `json:"expiresInSeconds,omitempty"`
}

// openTurn makes the conversation if it is not there and opens a turn in it.
func (f fleetURL) openTurn(ctx context.Context, conversation string, order turnOrder) (turnID, token string, err error) {
	if !call.ValidID(conversation) {
		return "", "", fmt.Errorf("the conversation %q: an id is 1 to 64 of A-Z, a-z, 0-9, _ and -", conversation)
	}
	path := "/v1/conversations/" + conversation
	if _, err := f.do(ctx, http.MethodPut, path, nil, nil, nil); err != nil {
		return "", "", fmt.Errorf("make the conversation: %w", err)
	}
	var opened struct{ TurnID, Token string }
	if _, err := f.do(ctx, http.MethodPost, path+"/turns", nil, order, &opened); err != nil {
		return "", "", fmt.Errorf("open a turn: %w", err)
	}
	return opened.TurnID, opened.Token, nil
}

func (f fleetURL) closeTurn(ctx context.Context, turnID string) error {
	_, err := f.do(ctx, http.MethodPost, "/v1/turns/"+turnID+"/close", nil, nil, nil)
	return err
}

// call calls a tool under a turn's token and waits for the result until ctx ends.
func (f fleetURL) call(ctx context.Context, callID, tool string, arguments json.RawMessage) (call.Result, error) {
	result, err := client.New(f.url, f.bearer, nil).Call(ctx, client.Call{ID: callID, Tool: tool, Arguments: arguments})
	switch {
	case err != nil && ctx.Err() != nil:
		return call.Result{}, fmt.Errorf("wait for %s, which goes on as %s if it was accepted: %w", tool, callID, ctx.Err())
	case err != nil:
		return call.Result{}, fmt.Errorf("call %s: %w", tool, err)
	}
	return result, nil
}

// target is how a command names a fleet that runs.
type target struct {
	URL string `help:"Address of a dispatcher." default:"http://127.0.0.1:8080" env:"TREELINE_URL" placeholder:"URL"`
}

// portalKey is how a command that acts as the portal is given its key.
type portalKey struct {
	Key     string `help:"The portal's key." env:"TREELINE_PORTAL_KEY" placeholder:"KEY"`
	KeyFile string `help:"File with the portal's key." env:"TREELINE_PORTAL_KEY_FILE" placeholder:"FILE"`
}

// get gives the first key; "" if none is set.
func (k portalKey) get() (string, error) {
	text := k.Key
	if text == "" && k.KeyFile != "" {
		b, err := os.ReadFile(k.KeyFile)
		if err != nil {
			return "", fmt.Errorf("read the portal's key: %w", err)
		}
		text = string(b)
	}
	keys := strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == '\n' || r == '\r' })
	if len(keys) == 0 {
		return "", nil
	}
	return strings.TrimSpace(keys[0]), nil
}

var errNoCredential = errors.New("say who is calling: --token of a turn, or --key (or --key-file) of the portal with --conversation")
