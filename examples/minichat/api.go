package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox"
)

var errBadRequest = errors.New("bad request")

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

// routes are the service's API.
func (s *service) routes() http.Handler {
	mux := http.NewServeMux()
	for pattern, handle := range map[string]func(*http.Request) (any, error){
		"PUT /tenants/{tenant}/quota":                            s.putQuota,
		"PUT /tenants/{tenant}/account":                          s.putAccount,
		"GET /tenants/{tenant}":                                  s.getTenant,
		"POST /tenants/{tenant}/turns":                           s.postTurn,
		"POST /tenants/{tenant}/turns/{turn}/{request}/finalise": s.postFinalise,
		"GET /outbox":                                            s.getOutbox,
		"POST /outbox/{event}/retry":                             s.postRetry,
	} {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			answer, err := handle(r)
			write(w, answer, err)
		})
	}
	return mux
}

func write(w http.ResponseWriter, answer any, err error) {
	w.Header().Set("Content-Type", "application/json")
	if err != nil {
		w.WriteHeader(status(err))
		answer = map[string]string{"error": err.Error()}
	}
	_ = json.NewEncoder(w).Encode(answer) // the client may be gone
}

func status(err error) int {
	switch {
	case errors.Is(err, errBadRequest), errors.Is(err, errOutcome), errors.Is(err, outbox.ErrInvalidEvent):
		return http.StatusBadRequest
	case errors.Is(err, errUnknownTurn):
		return http.StatusNotFound
	case errors.Is(err, errOverQuota):
		return http.StatusTooManyRequests
	}
	return http.StatusInternalServerError
}

// maxBody is the longest request.
const maxBody = 1 << 20

// read reads a body and the ids of the path, in order.
func read(r *http.Request, body any, ids map[string]*uuid.UUID) (err error) {
	for name, id := range ids {
		if *id, err = uuid.Parse(r.PathValue(name)); err != nil {
			return fmt.Errorf("%w: %s %q is not a UUID", errBadRequest, name, r.PathValue(name))
		}
	}
	if body == nil {
		return nil
	}
	if err := json.NewDecoder(io.LimitReader(r.Body, maxBody)).Decode(body); err != nil {
		return fmt.Errorf("%w: the body: %w", errBadRequest, err)
	}
	return nil
}

func (s *service) putQuota(r *http.Request) (any, error) {
	var id uuid.UUID
	var body quotaRequest
	if err := read(r, &body, map[string]*uuid.UUID{"tenant": &id}); err != nil {
		return nil, err
	}
	if err := s.setQuota(r.Context(), id, body.Tokens); err != nil {
		return nil, err
	}
	return s.tenant(r.Context(), id)
}

func (s *service) putAccount(r *http.Request) (any, error) {
	var id uuid.UUID
	if err := read(r, nil, map[string]*uuid.UUID{"tenant": &id}); err != nil {
		return nil, err
	}
	if err := s.openAccount(r.Context(), id); err != nil {
		return nil, err
	}
	return s.tenant(r.Context(), id)
}

func (s *service) getTenant(r *http.Request) (any, error) {
	var id uuid.UUID
	if err := read(r, nil, map[string]*uuid.UUID{"tenant": &id}); err != nil {
		return nil, err
	}
	return s.tenant(r.Context(), id)
}

func (s *service) postTurn(r *http.Request) (any, error) {
	var t turn
	var body beginRequest
	if err := read(r, &body, map[string]*uuid.UUID{"tenant": &t.Tenant}); err != nil {
		return nil, err
	}
	t.Turn, t.Request = body.Turn, body.Request
	return t, s.begin(r.Context(), t, body.Prompt)
}

func (s *service) postFinalise(r *http.Request) (any, error) {
	var t turn
	var body finaliseRequest
	if err := read(r, &body, map[string]*uuid.UUID{"tenant": &t.Tenant, "turn": &t.Turn, "request": &t.Request}); err != nil {
		return nil, err
	}
	used, emitted, err := s.finalise(r.Context(), t, body.Outcome, body.Reply)
	return finaliseAnswer{usage: used, Event: emitted.ID, AlreadyEnqueued: emitted.AlreadyEnqueued}, err
}

func (s *service) getOutbox(r *http.Request) (any, error) {
	stats, err := s.module.Stats(r.Context())
	return outboxAnswer{Waiting: stats.Due + stats.Held + stats.Retrying, Dead: stats.Dead}, err
}

func (s *service) postRetry(r *http.Request) (any, error) {
	var id uuid.UUID
	if err := read(r, nil, map[string]*uuid.UUID{"event": &id}); err != nil {
		return nil, err
	}
	retried, err := s.module.Retry(r.Context(), id)
	if err == nil && len(retried) == 0 {
		err = fmt.Errorf("%w: event %s is not dead", errBadRequest, id)
	}
	s.dispatcher.Nudge()
	return map[string]uuid.UUID{"retried": id}, err
}
