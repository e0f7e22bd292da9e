package httpapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox/packfinderz/internal/licensing"
)

// maxBody bounds a request, far above the longest reason.
const maxBody = 16 << 10

var (
	errBadRequest = errors.New("bad request")
	errNoRoute    = errors.New("there is nothing here")
	errNotGateway = errors.New("only the gateway may ask; its requests bear its secret")
)

// answer writes what a call returns as JSON, or its error as {"error": "..."}.
func (a *api) answer(call func(r *http.Request) (status int, value any, err error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		status, value, err := call(r)
		if err != nil {
			status, value = a.failure(r, err)
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(value) // the client may be gone
	}
}

// failure returns the answer for an error. It logs errors that are not the client's, and hides their text.
func (a *api) failure(r *http.Request, err error) (int, any) {
	status, text := http.StatusInternalServerError, "something went wrong here; the request can be sent again"
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		status, text = http.StatusRequestEntityTooLarge, fmt.Sprintf("the body has more than %d bytes", maxBody)
	case errors.Is(err, errBadRequest), errors.Is(err, licensing.ErrInvalid):
		status, text = http.StatusBadRequest, err.Error()
	case errors.Is(err, errNotGateway):
		status, text = http.StatusUnauthorized, err.Error()
	case errors.Is(err, errNoRoute), errors.Is(err, licensing.ErrNotFound):
		status, text = http.StatusNotFound, err.Error()
	case errors.Is(err, licensing.ErrConflict):
		status, text = http.StatusConflict, err.Error()
	case r.Context().Err() != nil: // the client is gone, and nobody is told
	default:
		a.log.Error("a request failed", "method", r.Method, "path", r.URL.Path, "error", err)
	}
	return status, map[string]string{"error": text}
}

// read reads the id from the path and the rest from the body.
func read(r *http.Request, name string, body any) (uuid.UUID, error) {
	id, err := pathID(r, name)
	if err != nil {
		return uuid.Nil, err
	}
	decoder := json.NewDecoder(r.Body)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(body); err != nil {
		return uuid.Nil, fmt.Errorf("%w: the body: %w", errBadRequest, err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return uuid.Nil, fmt.Errorf("%w: the body goes on after its object", errBadRequest)
	}
	return id, nil
}

// pathID accepts only the usual form of a UUID: any other would be a second address of the same thing.
func pathID(r *http.Request, name string) (uuid.UUID, error) {
	text := r.PathValue(name)
	id, err := uuid.Parse(text)
	if err != nil || id.String() != text || id == uuid.Nil {
		return uuid.Nil, fmt.Errorf("%w: the id of the %s must be a UUID, in lower case with hyphens", errBadRequest, name)
	}
	return id, nil
}
