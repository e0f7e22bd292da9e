package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// client talks to the service as its users do.
type client struct {
	url  string
	http http.Client
}

func newClient(url string) *client {
	return &client{url: url, http: http.Client{Timeout: time.Minute}}
}

func (c *client) upload(ctx context.Context, name, key, content string) (reply, error) {
	return c.do(ctx, http.MethodPost, "/files/"+name, key, content)
}

func (c *client) signUp(ctx context.Context, email string) (reply, error) {
	return c.do(ctx, http.MethodPost, "/users", "", fmt.Sprintf(`{"email": %q}`, email))
}

// do sends a request and reads the reply, whose error becomes one here.
func (c *client) do(ctx context.Context, method, path, key, body string) (got reply, err error) {
	request, err := http.NewRequestWithContext(ctx, method, c.url+path, strings.NewReader(body))
	if err != nil {
		return reply{}, fmt.Errorf("make a request: %w", err)
	}
	if key != "" {
		request.Header.Set("Idempotency-Key", key)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return reply{}, err
	}
	defer func() { _ = response.Body.Close() }() // it has been read
	if err := json.NewDecoder(response.Body).Decode(&got); err != nil {
		return reply{}, fmt.Errorf("read the answer to %s %s: %w", method, path, err)
	}
	if got.Error != "" {
		return reply{}, fmt.Errorf("%s %s: %s: %s", method, path, response.Status, got.Error)
	}
	return got, nil
}
