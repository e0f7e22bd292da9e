// Package httpapi offers package licensing over HTTP, in JSON.
//
// It has no users of its own: a gateway in front of it authenticates them, and sends their id in X-User-ID. Guard
// refuses all other requests.
package httpapi

import (
	"context"
	"log/slog"
	"net/http"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox/packfinderz/internal/licensing"
	"github.com/packfinderz/outbox/packfinderz/pkg/outbox"
)

type api struct {
	licensing *licensing.Service
	log       *slog.Logger
}

// New returns the handler. Clients choose the ids in paths, so that they can repeat a request.
func New(service *licensing.Service, log *slog.Logger) http.Handler {
	a := &api{service, log}
	mux := http.NewServeMux()
	mux.HandleFunc("PUT /v1/stores/{store}", a.answer(a.createStore))
	mux.HandleFunc("PUT /v1/stores/{store}/licenses/{license}", a.answer(a.upload))
	mux.HandleFunc("POST /v1/licenses/{license}/approve", a.answer(a.approve))
	mux.HandleFunc("POST /v1/licenses/{license}/reject", a.answer(a.reject))
	mux.HandleFunc("GET /v1/licenses/{license}", a.answer(a.license))
	mux.HandleFunc("GET /v1/licenses/{license}/notifications", a.answer(a.notifications))
	mux.HandleFunc("/", a.answer(func(*http.Request) (int, any, error) { return 0, nil, errNoRoute }))
	return mux
}

func (a *api) createStore(r *http.Request) (int, any, error) {
	var body struct {
		Name string `json:"name"`
	}
	id, err := read(r, "store", &body)
	if err != nil {
		return 0, nil, err
	}
	store, created, err := a.licensing.CreateStore(r.Context(), id, body.Name)
	return status(created), store, err
}

func (a *api) upload(r *http.Request) (int, any, error) {
	var body struct {
		Number string `json:"number"`
	}
	store, err := pathID(r, "store")
	if err != nil {
		return 0, nil, err
	}
	id, err := read(r, "license", &body)
	if err != nil {
		return 0, nil, err
	}
	license, created, err := a.licensing.Upload(r.Context(), actor(r), store, id, body.Number)
	return status(created), license, err
}

func (a *api) approve(r *http.Request) (int, any, error) {
	return about(r, func(ctx context.Context, id uuid.UUID) (any, error) { return a.licensing.Approve(ctx, actor(r), id) })
}

func (a *api) reject(r *http.Request) (int, any, error) {
	var body struct {
		Reason string `json:"reason"`
	}
	id, err := read(r, "license", &body)
	if err != nil {
		return 0, nil, err
	}
	license, err := a.licensing.Reject(r.Context(), actor(r), id, body.Reason)
	return http.StatusOK, license, err
}

func (a *api) license(r *http.Request) (int, any, error) {
	return about(r, func(ctx context.Context, id uuid.UUID) (any, error) { return a.licensing.License(ctx, id) })
}

func (a *api) notifications(r *http.Request) (int, any, error) {
	return about(r, func(ctx context.Context, id uuid.UUID) (any, error) { return a.licensing.Notifications(ctx, id) })
}

// about answers a request that has only the id of a licence.
func about(r *http.Request, call func(ctx context.Context, id uuid.UUID) (any, error)) (int, any, error) {
	id, err := pathID(r, "license")
	if err != nil {
		return 0, nil, err
	}
	value, err := call(r.Context(), id)
	return http.StatusOK, value, err
}

func status(created bool) int {
	if created {
		return http.StatusCreated
	}
	return http.StatusOK
}

// actor returns the user that the gateway names, or nil.
func actor(r *http.Request) *outbox.ActorRef {
	id := r.Header.Get("X-User-ID")
	if id == "" {
		return nil
	}
	return &outbox.ActorRef{Type: "user", ID: id}
}
