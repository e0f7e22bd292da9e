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

// What the APIs of both sides share.

var errBadRequest = errors.New("bad request")

// serve makes a handler of functions by pattern.
func serve(routes map[string]func(*http.Request) (any, error)) http.Handler {
	mux := http.NewServeMux()
	for pattern, handle := range routes {
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
