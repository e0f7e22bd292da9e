package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"github.com/google/uuid"
)

// client talks to the service as others would.
type client struct {
	base string
	http http.Client
}

// refusal is an answer that is none.
type refusal struct {
	status int
	text   string
}

func (r *refusal) Error() string { return r.text }

// call sends a request and reads the answer.
func (c *client) call(ctx context.Context, method, path string, body, answer any) error {
	sent, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("write the request: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(sent))
	if err != nil {
		return fmt.Errorf("make the request: %w", err)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }() // it is read
	received, err := io.ReadAll(response.Body)
	if err != nil {
		return fmt.Errorf("read the answer: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		return &refusal{response.StatusCode, string(bytes.TrimSpace(received))}
	}
	if answer == nil {
		return nil
	}
	if err := json.Unmarshal(received, answer); err != nil {
		return fmt.Errorf("read the answer: %w", err)
	}
	return nil
}

// begin begins a turn.
func (c *client) begin(ctx context.Context, t turn, prompt string) error {
	return c.call(ctx, http.MethodPost, fmt.Sprintf("/tenants/%s/turns", t.Tenant), beginRequest{t.Turn, t.Request, prompt}, nil)
}

// finalise ends a turn.
func (c *client) finalise(ctx context.Context, t turn, outcome, reply string) (answer finaliseAnswer, err error) {
	path := fmt.Sprintf("/tenants/%s/turns/%s/%s/finalise", t.Tenant, t.Turn, t.Request)
	err = c.call(ctx, http.MethodPost, path, finaliseRequest{outcome, reply}, &answer)
	return answer, err
}

// setUp gives a tenant a quota and, if it is to pay, an account.
func (c *client) setUp(ctx context.Context, id uuid.UUID, quota int64, account bool) error {
	path := "/tenants/" + id.String()
	if err := c.call(ctx, http.MethodPut, path+"/quota", quotaRequest{quota}, nil); err != nil || !account {
		return err
	}
	return c.call(ctx, http.MethodPut, path+"/account", nil, nil)
}

// tenant is how a tenant stands.
func (c *client) tenant(ctx context.Context, id uuid.UUID) (answer tenant, err error) {
	err = c.call(ctx, http.MethodGet, "/tenants/"+id.String(), nil, &answer)
	return answer, err
}

// outbox is how the events stand.
func (c *client) outbox(ctx context.Context) (answer outboxAnswer, err error) {
	err = c.call(ctx, http.MethodGet, "/outbox", nil, &answer)
	return answer, err
}
