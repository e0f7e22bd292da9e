// Package compliance notifies admins and stores about licences: it handles the events license_status_changed.
package compliance

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/consume/inbox"
	"github.com/packfinderz/outbox/packfinderz/pkg/enums"
	"github.com/packfinderz/outbox/packfinderz/pkg/outbox/payloads"
)

// Consumer is the name under which events are marked as handled.
const Consumer = "compliance"

// patience bounds the one statement of an event. It is shorter than any ack deadline.
const patience = 10 * time.Second

// Handler handles events, each once. It is safe for concurrent use.
type Handler struct {
	pool  *pgxpool.Pool
	inbox inbox.Inbox
	log   *slog.Logger

	failed atomic.Pointer[failure]
}

var _ outbox.Publisher = (*Handler)(nil)

// New returns a handler that writes to the table notifications.
func New(pool *pgxpool.Pool, in inbox.Inbox, log *slog.Logger) (*Handler, error) {
	if pool == nil || in == nil || log == nil {
		return nil, errors.New("compliance: the pool, the inbox or the logger is nil")
	}
	return &Handler{pool: pool, inbox: in, log: log}, nil
}

// Publish handles events of its type. It accepts all others at once: they are for other consumers.
func (h *Handler) Publish(ctx context.Context, messages []outbox.Message) []error {
	errs := make([]error, len(messages))
	for i := range messages {
		if messages[i].Type == string(enums.LicenseStatusChanged) {
			errs[i] = h.handle(ctx, &messages[i])
		}
	}
	return errs
}

// handle returns nil once the notification is written, by whomever.
func (h *Handler) handle(ctx context.Context, message *outbox.Message) error {
	change, told, err := open(message)
	if err != nil {
		return &outbox.TerminalError{Reason: outbox.ReasonInvalidPayload, Err: err}
	}
	var wrote bool
	ran, err := inbox.Handle(ctx, h.inbox, Consumer, message.ID, func(ctx context.Context) (err error) {
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		wrote, err = h.write(ctx, message, change, told)
		h.note(err)
		return err
	})
	if errors.Is(err, inbox.ErrNotMarked) {
		// The notification is there, and its unique key stands in for the mark.
		h.log.Warn("the event is handled, but could not be marked", "event_id", message.ID, "error", outbox.ErrorText(err))
		err = nil
	}
	if err != nil {
		return err
	}
	h.log.Info("event handled", "event_id", message.ID, "event_type", message.Type, "aggregate_type", message.AggregateType,
		"aggregate_id", message.AggregateID, "attempt", message.Attempt, "audience", told.audience, "notification", outcome(ran, wrote))
	return nil
}

// outcome describes what happened to an event, for the log.
func outcome(ran, wrote bool) string {
	switch {
	case wrote:
		return "written"
	case ran:
		return "written before" // by one that could not mark it: killed, or Redis has forgotten
	}
	return "marked before"
}

// open reads the change and decides whom to notify. It refuses an envelope with the id of another event.
func open(message *outbox.Message) (*payloads.LicenseStatusChanged, notice, error) {
	envelope, change, err := payloads.Open[payloads.LicenseStatusChanged](message.Payload)
	if err != nil {
		return nil, notice{}, err
	}
	if envelope.EventID != message.ID.String() {
		return nil, notice{}, fmt.Errorf("the envelope is that of event %s", envelope.EventID)
	}
	told, err := noticeOf(&change)
	return &change, told, err
}
