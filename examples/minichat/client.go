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

// client talks to the services as others would.
type client struct {
	chat, billing string // their URLs
	http          http.Client
}

// refusal is an answer that is none.
type refusal struct {
	status int
	text   string
}

func (r *refusal) Error() string { return r.text }

// call sends a request to a URL and reads the answer.
func (c *client) call(ctx context.Context, method, url string, body, answer any) error {
	sent, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("write the request: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(sent))
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
	return c.call(ctx, http.MethodPost, fmt.Sprintf("%s/tenants/%s/turns", c.chat, t.Tenant), beginRequest{t.Turn, t.Request, prompt}, nil)
}

// finalise ends a turn.
func (c *client) finalise(ctx context.Context, t turn, outcome, reply string) (answer finaliseAnswer, err error) {
	url := fmt.Sprintf("%s/tenants/%s/turns/%s/%s/finalise", c.chat, t.Tenant, t.Turn, t.Request)
	err = c.call(ctx, http.MethodPost, url, finaliseRequest{outcome, reply}, &answer)
	return answer, err
}

// setQuota gives a tenant a quota at the chat.
func (c *client) setQuota(ctx context.Context, id uuid.UUID, quota int64) error {
	return c.call(ctx, http.MethodPut, c.chat+"/tenants/"+id.String()+"/quota", quotaRequest{quota}, nil)
}

// tenant is how a tenant stands at the chat.
func (c *client) tenant(ctx context.Context, id uuid.UUID) (answer tenant, err error) {
	err = c.call(ctx, http.MethodGet, c.chat+"/tenants/"+id.String(), nil, &answer)
	return answer, err
}

// outbox is how the chat's messages stand.
func (c *client) outbox(ctx context.Context) (answer outboxAnswer, err error) {
	err = c.call(ctx, http.MethodGet, c.chat+"/outbox", nil, &answer)
	return answer, err
}

// retry has a dead message of the chat's tried again.
func (c *client) retry(ctx context.Context, event uuid.UUID) error {
	return c.call(ctx, http.MethodPost, fmt.Sprintf("%s/outbox/%s/retry", c.chat, event), nil, nil)
}

// account is what billing has counted.
func (c *client) account(ctx context.Context, id uuid.UUID) (answer account, err error) {
	err = c.call(ctx, http.MethodGet, c.billing+"/accounts/"+id.String(), nil, &answer)
	return answer, err
}
