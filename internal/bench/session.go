package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// answer is what of a call's result is looked at here.
type answer struct {
	Status  string `json:"status"`
	Code    string `json:"code"`
	Attempt int    `json:"attempt"`
	Changes struct {
		Created  []string `json:"created"`
		Modified []string `json:"modified"`
	} `json:"changes"`
	Data struct {
		Stdout string `json:"stdout"`
	} `json:"data"`
}

// newTurn opens a turn in a conversation of its own.
func newTurn(ctx context.Context, t Target, tools ...string) (*client, error) {
	c := &client{http: &http.Client{}, url: t.URL}
	id := "bench-" + strconv.FormatInt(time.Now().UnixNano(), 36)
	if _, err := c.do(ctx, http.MethodPut, "/v1/conversations/"+id, t.PortalKey, struct{}{}); err != nil {
		return nil, err
	}
	b, err := c.do(ctx, http.MethodPost, "/v1/conversations/"+id+"/turns", t.PortalKey, map[string]any{
		"caller": map[string]string{"user": "bench", "department": "bench"}, "tools": tools})
	if err != nil {
		return nil, err
	}
	var opened struct {
		Token string `json:"token"`
	}
	if err := json.Unmarshal(b, &opened); err != nil {
		return nil, fmt.Errorf("read the turn: %w", err)
	}
	c.token = opened.Token
	return c, nil
}

// call makes a call, waits for its result, and fails unless it is ok.
func (c *client) call(ctx context.Context, tool string, arguments any) (answer, error) {
	var a answer
	b, err := c.do(ctx, http.MethodPost, "/v1/tools/"+tool, c.token, arguments)
	if err == nil {
		err = json.Unmarshal(b, &a)
	}
	if err == nil && a.Status != "ok" {
		err = fmt.Errorf("%s ended as %q %s: %.300s", tool, a.Status, a.Code, b)
	}
	return a, err
}

// begin makes a call and does not wait for it. It gives the call's id.
func (c *client) begin(ctx context.Context, tool string, arguments any) (string, error) {
	id := "begun-" + strconv.FormatInt(time.Now().UnixNano(), 36)
	body, err := json.Marshal(arguments)
	if err != nil {
		return "", err
	}
	_, err = c.request(ctx, http.MethodPost, "/v1/tools/"+tool, c.token, body, map[string]string{"Idempotency-Key": id, "Prefer": "wait=0"})
	return id, err
}

// ended waits for a call that was begun.
func (c *client) ended(ctx context.Context, id string) (answer, error) {
	for {
		b, err := c.do(ctx, http.MethodGet, "/v1/calls/"+id, c.token, nil)
		if err != nil {
			return answer{}, err
		}
		var a answer
		if err := json.Unmarshal(b, &a); err != nil {
			return answer{}, fmt.Errorf("read a result: %w", err)
		}
		if a.Status != "" {
			return a, nil
		}
		select {
		case <-ctx.Done():
			return answer{}, ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (c *client) cancel(ctx context.Context, id string) error {
	_, err := c.do(ctx, http.MethodPost, "/v1/calls/"+id+"/cancel", c.token, struct{}{})
	return err
}
