package admin

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/packfinderz/outbox/ops"
)

// failure is an error whose text is for the one who made the request.
type failure struct {
	status int
	text   string
}

func (f *failure) Error() string { return f.text }

func notFound(format string, args ...any) error {
	return &failure{http.StatusNotFound, fmt.Sprintf(format, args...)}
}

// badInput is an error in what was sent.
func badInput(err error) error {
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return &failure{http.StatusRequestEntityTooLarge, fmt.Sprintf("The request is larger than %d bytes.", tooLarge.Limit)}
	}
	return &failure{http.StatusBadRequest, err.Error()}
}

// nobody is the answer to who has not said who they are.
func nobody() error { return &failure{http.StatusUnauthorized, "You have to log in first."} }

// forbidden is the answer to who may not.
func forbidden(text string) error { return &failure{http.StatusForbidden, text} }

// judge finds the status and the text of an error. What is not for people's eyes is logged
// and not told: an error of the database may hold an address.
func (c *Console) judge(r *http.Request, err error) (status int, text string) {
	var told *failure
	switch {
	case errors.As(err, &told):
		return told.status, told.text
	case errors.Is(err, ops.ErrNotFound):
		return http.StatusNotFound, "There is no such event. It may have been purged."
	case errors.Is(err, ops.ErrUnsupported), errors.Is(err, ops.ErrFilter):
		return http.StatusBadRequest, err.Error()
	case errors.Is(err, context.Canceled) && r.Context().Err() != nil:
		return 499, "The request was given up." // nobody reads it
	case errors.Is(err, context.DeadlineExceeded):
		return http.StatusGatewayTimeout, "The database did not answer in time."
	}
	c.log.Error("the console could not answer", "path", r.URL.Path, "error", err)
	return http.StatusBadGateway, "The database could not answer. The console's log says why."
}
