package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/mail"

	"github.com/google/uuid"
)

const maxUpload = 1 << 20

func (s *service) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /files/{name}", answer(s.postFile))
	mux.HandleFunc("POST /users", answer(s.postUser))
	mux.HandleFunc("PUT /decoders/{format}", answer(s.putDecoder))
	mux.HandleFunc("DELETE /decoders/{format}", answer(s.deleteDecoder))
	mux.HandleFunc("POST /events/{id}/retry", answer(s.retryEvent))
	return mux
}

// reply is the body of an answer.
type reply struct {
	ID      int64     `json:"id,omitempty"`
	EventID uuid.UUID `json:"event_id,omitzero"`
	Error   string    `json:"error,omitempty"`
}

// refused is an error of the client, with its status.
type refused struct {
	status int
	error
}

// answer makes a handler of a function that returns a reply or an error.
func answer(call func(*http.Request) (reply, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, maxUpload)
		status := http.StatusOK
		body, err := call(r)
		if err != nil {
			status, body = http.StatusInternalServerError, reply{Error: err.Error()}
			var client refused
			if errors.As(err, &client) {
				status = client.status
			}
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(body) // the client is gone
	}
}

func (s *service) postFile(r *http.Request) (reply, error) {
	content, err := io.ReadAll(r.Body)
	if err != nil {
		return reply{}, refused{http.StatusRequestEntityTooLarge, fmt.Errorf("read the upload: %w", err)}
	}
	key := r.Header.Get("Idempotency-Key")
	if key == "" {
		key = uuid.NewString()
	}
	file, event, err := s.storeFile(r.Context(), key, r.PathValue("name"), content)
	return reply{ID: file.FileID, EventID: event.ID}, err
}

func (s *service) postUser(r *http.Request) (reply, error) {
	var request struct {
		Email string `json:"email"`
	}
	if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
		return reply{}, refused{http.StatusBadRequest, fmt.Errorf("read the request: %w", err)}
	}
	if _, err := mail.ParseAddress(request.Email); err != nil {
		return reply{}, refused{http.StatusBadRequest, fmt.Errorf("read the address: %w", err)}
	}
	user, event, err := s.createUser(r.Context(), request.Email)
	if errors.Is(err, errTaken) {
		return reply{}, refused{http.StatusConflict, err}
	}
	return reply{ID: user.UserID, EventID: event.ID}, err
}

func (s *service) putDecoder(r *http.Request) (reply, error) {
	return reply{}, s.installDecoder(r.Context(), r.PathValue("format"))
}

func (s *service) deleteDecoder(r *http.Request) (reply, error) {
	return reply{}, s.removeDecoder(r.Context(), r.PathValue("format"))
}

// retryEvent brings a failed event back, as outbox retry does from the command line.
func (s *service) retryEvent(r *http.Request) (reply, error) {
	id, err := uuid.Parse(r.PathValue("id"))
	if err != nil {
		return reply{}, refused{http.StatusBadRequest, fmt.Errorf("read the event's id: %w", err)}
	}
	retried, err := s.store.Retry(r.Context(), id)
	if err != nil {
		return reply{}, err
	}
	if len(retried) == 0 {
		return reply{}, refused{http.StatusConflict, fmt.Errorf("event %s has not failed", id)}
	}
	s.say.printf("event %s is retried by hand", id)
	s.relay.Nudge()
	return reply{EventID: id}, nil
}
