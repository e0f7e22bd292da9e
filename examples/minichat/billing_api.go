package main

import (
	"net/http"

	"github.com/google/uuid"
)

// routes are billing's API.
func (b *billing) routes() http.Handler {
	return serve(map[string]func(*http.Request) (any, error){
		"PUT /accounts/{tenant}": b.putAccount,
		"GET /accounts/{tenant}": b.getAccount,
	})
}

func (b *billing) putAccount(r *http.Request) (any, error) {
	var id uuid.UUID
	if err := read(r, nil, map[string]*uuid.UUID{"tenant": &id}); err != nil {
		return nil, err
	}
	if err := b.openAccount(r.Context(), id); err != nil {
		return nil, err
	}
	return b.account(r.Context(), id)
}

func (b *billing) getAccount(r *http.Request) (any, error) {
	var id uuid.UUID
	if err := read(r, nil, map[string]*uuid.UUID{"tenant": &id}); err != nil {
		return nil, err
	}
	return b.account(r.Context(), id)
}
