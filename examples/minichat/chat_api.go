package main

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/google/uuid"
)

// The bodies of requests and answers.
type (
	quotaRequest struct {
		Tokens int64 `json:"tokens"`
	}
	beginRequest struct {
		Turn    uuid.UUID `json:"turn"`
		Request uuid.UUID `json:"request"`
		Prompt  string    `json:"prompt"`
	}
	finaliseRequest struct {
		Outcome string `json:"outcome"`
		Reply   string `json:"reply"`
	}
	finaliseAnswer struct {
		usage
		Event           uuid.UUID `json:"event"`
		AlreadyEnqueued bool      `json:"alreadyEnqueued"`
	}
	outboxAnswer struct {
		Waiting int64 `json:"waiting"` // due, held or to be retried
		Dead    int64 `json:"dead"`
	}
)

// routes are the chat's API.
func (c *chat) routes() http.Handler {
	return serve(map[string]func(*http.Request) (any, error){
		"PUT /tenants/{tenant}/quota":                            c.putQuota,
		"GET /tenants/{tenant}":                                  c.getTenant,
		"POST /tenants/{tenant}/turns":                           c.postTurn,
		"POST /tenants/{tenant}/turns/{turn}/{request}/finalise": c.postFinalise,
		"GET /outbox":                c.getOutbox,
		"POST /outbox/{event}/retry": c.postRetry,
	})
}

func (c *chat) putQuota(r *http.Request) (any, error) {
	var id uuid.UUID
	var body quotaRequest
	if err := read(r, &body, map[string]*uuid.UUID{"tenant": &id}); err != nil {
		return nil, err
	}
	if body.Tokens < 0 {
		return nil, fmt.Errorf("%w: the quota is negative", errBadRequest)
	}
	if err := c.setQuota(r.Context(), id, body.Tokens); err != nil {
		return nil, err
	}
	return c.tenant(r.Context(), id)
}

func (c *chat) getTenant(r *http.Request) (any, error) {
	var id uuid.UUID
	if err := read(r, nil, map[string]*uuid.UUID{"tenant": &id}); err != nil {
		return nil, err
	}
	return c.tenant(r.Context(), id)
}

func (c *chat) postTurn(r *http.Request) (any, error) {
	var t turn
	var body beginRequest
	if err := read(r, &body, map[string]*uuid.UUID{"tenant": &t.Tenant}); err != nil {
		return nil, err
	}
	t.Turn, t.Request = body.Turn, body.Request
	switch {
	case t.Turn == uuid.Nil || t.Request == uuid.Nil:
		return nil, fmt.Errorf("%w: turn and request are UUIDs that the client makes", errBadRequest)
	case strings.ContainsRune(body.Prompt, 0):
		return nil, fmt.Errorf("%w: the prompt has a NUL character", errBadRequest)
	}
	return t, c.begin(r.Context(), t, body.Prompt)
}

func (c *chat) postFinalise(r *http.Request) (any, error) {
	var t turn
	var body finaliseRequest
	if err := read(r, &body, map[string]*uuid.UUID{"tenant": &t.Tenant, "turn": &t.Turn, "request": &t.Request}); err != nil {
		return nil, err
	}
	used, emitted, err := c.finalise(r.Context(), t, body.Outcome, body.Reply)
	return finaliseAnswer{usage: used, Event: emitted.ID, AlreadyEnqueued: emitted.AlreadyEnqueued}, err
}

func (c *chat) getOutbox(r *http.Request) (any, error) {
	stats, err := c.module.Stats(r.Context())
	return outboxAnswer{Waiting: stats.Due + stats.Held + stats.Retrying, Dead: stats.Dead}, err
}

func (c *chat) postRetry(r *http.Request) (any, error) {
	var id uuid.UUID
	if err := read(r, nil, map[string]*uuid.UUID{"event": &id}); err != nil {
		return nil, err
	}
	retried, err := c.module.Retry(r.Context(), id)
	if err == nil && len(retried) == 0 {
		err = fmt.Errorf("%w: event %s is not dead", errBadRequest, id)
	}
	c.dispatcher.Nudge()
	return map[string]uuid.UUID{"retried": id}, err
}
