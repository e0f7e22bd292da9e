package admin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/packfinderz/outbox/ops"
	"github.com/packfinderz/outbox/pgstream"
)

// failure is an error whose text may be shown to the user.
type failure struct {
	status int
	text   string
}

func (f *failure) Error() string { return f.text }

func notFound(format string, args ...any) error {
	return &failure{http.StatusNotFound, fmt.Sprintf(format, args...)}
}

// badInput is an error in the request.
func badInput(err error) error {
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return &failure{http.StatusRequestEntityTooLarge, fmt.Sprintf("The request is larger than %d bytes.", tooLarge.Limit)}
	}
	return &failure{http.StatusBadRequest, err.Error()}
}

// forbidden is the answer to a user who lacks the role.
func forbidden(text string) error { return &failure{http.StatusForbidden, text} }

// explain returns the status and the text of an error. If told is false, the text hides the error: a database's
// error may contain an address, say.
func explain(err error) (status int, text string, told bool) {
	var why *failure
	switch {
	case errors.As(err, &why):
		return why.status, why.text, true
	case errors.Is(err, ops.ErrNotFound):
		return http.StatusNotFound, "There is no such event. It may have been purged.", true
	case errors.Is(err, ops.ErrUnsupported), errors.Is(err, ops.ErrFilter):
		return http.StatusBadRequest, err.Error(), true
	case errors.Is(err, pgstream.ErrRestored):
		// No page could show anything certain. The text contains no address.
		return http.StatusConflict, "Relays refuse this stream, and so does the console: " + strings.TrimPrefix(err.Error(), "outbox: ") + ".", true
	case errors.Is(err, context.DeadlineExceeded):
		return http.StatusGatewayTimeout, "The database did not answer in time.", true
	case errors.Is(err, context.Canceled):
		return statusGivenUp, "It was given up.", true
	}
	return http.StatusBadGateway, "The database could not answer. The console's log says why.", false
}

// statusGivenUp is for a client that has gone away and reads no answer.
const statusGivenUp = 499

// judge explains an error, and logs it if the answer hides it.
func (c *Console) judge(r *http.Request, err error) (status int, text string) {
	status, text, told := explain(err)
	if !told {
		c.log.Error("the console could not answer", "path", r.URL.Path, "error", err)
	}
	return status, text
}
