package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox"
)

// tourTimeout ends a tour that is stuck.
const tourTimeout = 2 * time.Minute

// tour shows the service at work, through its own front door.
func tour(ctx context.Context, s *service, url string) error {
	ctx, cancel := context.WithTimeout(ctx, tourTimeout)
	defer cancel()
	c := newClient(url)
	defer c.http.CloseIdleConnections()
	for _, stop := range []func(context.Context, *service, *client) error{tourUpload, tourAccount, tourRetry} {
		if err := stop(ctx, s, c); err != nil {
			return err
		}
	}
	return nil
}

func tourUpload(ctx context.Context, s *service, c *client) error {
	s.say.printf("\n-- a file, by a request that is repeated: one file, one event, one thumbnail job")
	key := uuid.NewString()
	file, err := c.upload(ctx, "cat.png", key, "meow")
	if err != nil {
		return err
	}
	again, err := c.upload(ctx, "cat.png", key, "meow")
	if err != nil {
		return err
	}
	if again != file {
		return fmt.Errorf("the repeated upload is %+v, not %+v", again, file)
	}
	return s.await(ctx, file.EventID, outbox.Delivered)
}

func tourAccount(ctx context.Context, s *service, c *client) error {
	s.say.printf("\n-- an account, and its welcome mail")
	user, err := c.signUp(ctx, "ada+"+uuid.NewString()+"@example.com")
	if err != nil {
		return err
	}
	return s.await(ctx, user.EventID, outbox.Delivered)
}

func tourRetry(ctx context.Context, s *service, c *client) error {
	s.say.printf("\n-- a file that the thumbnailer cannot read: the upload succeeds, the handler fails")
	_, err := c.do(ctx, http.MethodDelete, "/decoders/heic", "", "")
	if err != nil {
		return err
	}
	file, err := c.upload(ctx, "photo.heic", "", "click")
	if err != nil {
		return err
	}
	err = errors.Join(s.await(ctx, file.EventID, outbox.Died), s.show(ctx, file.EventID))
	if err != nil {
		return err
	}
	s.say.printf("It stays so until a person retries it, by the service's own POST or, from another terminal, by")
	s.say.printf("  go run ./cmd/outbox retry --layout doorito --from '%s' %s", s.db.URL, file.EventID)
	if _, err := c.do(ctx, http.MethodPut, "/decoders/heic", "", ""); err != nil {
		return err
	}
	if _, err := c.do(ctx, http.MethodPost, "/events/"+file.EventID.String()+"/retry", "", ""); err != nil {
		return err
	}
	return errors.Join(s.await(ctx, file.EventID, outbox.Delivered), s.show(ctx, file.EventID))
}

// await waits until an event ends, which has to be so.
func (s *service) await(ctx context.Context, id uuid.UUID, want outbox.OutcomeKind) error {
	for {
		select {
		case end := <-s.say.ended:
			if end.id == id && end.kind != want {
				return fmt.Errorf("event %s is %s, not %s", id, end.kind, want)
			} else if end.id == id {
				return nil
			}
		case <-ctx.Done():
			return fmt.Errorf("wait for event %s: %w", id, ctx.Err())
		}
	}
}

// show prints an event's row.
func (s *service) show(ctx context.Context, id uuid.UUID) error {
	var row string
	err := s.db.QueryRow(ctx, `
		SELECT concat('status ', status, ', attempts ', attempts, ' of ', max_attempts,
			', next_attempt_at ', coalesce(next_attempt_at::text, 'NULL'), ', delivered_at ', coalesce(delivered_at::text, 'NULL'))
		FROM outbox_event WHERE id = $1`, id).Scan(&row)
	if err != nil {
		return fmt.Errorf("look at event %s: %w", id, err)
	}
	s.say.printf("  its row: %s", row)
	return nil
}
