package main

import (
	"net/http"

	"github.com/google/uuid"
)

// routes are billing's API.
func (b *billing) routes() http.Handler {
	return serve(map[string]func(*http.Request) (any, error){
		"GET /accounts/{tenant}": b.getAccount,
	})
}

func (b *billing) getAccount(r *http.Request) (any, error) {
	var id uuid.UUID
	if err := read(r, nil, map[string]*uuid.UUID{"tenant": &id}); err != nil {
		return nil, err
	}
	return b.account(r.Context(), id)
}
