package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/layouts/doorito"
)

const userCreatedType = "user.created"

// errTaken is the answer to a second account with the same address.
var errTaken = errors.New("there is an account with this address")

// userCreated tells of a user.
type userCreated struct {
	UserID    int64     `json:"user_id"`
	Email     string    `json:"email"`
	CreatedAt time.Time `json:"created_at"`
}

// createUser creates a user and emits the event, both or neither.
func (s *service) createUser(ctx context.Context, email string) (user userCreated, event outbox.Emitted, err error) {
	user = userCreated{Email: email}
	err = s.emitter.InTx(ctx, s.db.Pool, func(tx pgx.Tx) error {
		err := tx.QueryRow(ctx, `INSERT INTO users (email) VALUES ($1) ON CONFLICT (email) DO NOTHING RETURNING id, created_at`, email).
			Scan(&user.UserID, &user.CreatedAt)
		if errors.Is(err, pgx.ErrNoRows) {
			return errTaken
		} else if err != nil {
			return fmt.Errorf("create the user: %w", err)
		}
		// Without a key of its own: a user is created once.
		event, err = doorito.EmitEvent(ctx, s.emitter, tx, "User", strconv.FormatInt(user.UserID, 10), userCreatedType, user)
		return err
	})
	if err == nil {
		s.say.printf("user %d, %s, and its event are committed", user.UserID, email)
	}
	return user, event, err
}

// sendWelcome handles user.created. The mail and the mark that the event is handled are committed
// together, so that a second call does nothing.
func (s *service) sendWelcome(ctx context.Context, user userCreated, message outbox.Message) error {
	ran, err := s.inbox.Handle(ctx, s.db.Pool, "welcome-mail", message.ID, func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `INSERT INTO welcome_mails (user_id, address) VALUES ($1, $2)`, user.UserID, user.Email)
		return err
	})
	if err != nil {
		return fmt.Errorf("write the welcome mail: %w", err)
	}
	if ran {
		s.say.printf("  welcome mail to user %d", user.UserID)
	} else {
		s.say.printf("  user %d has a welcome mail already", user.UserID)
	}
	return nil
}
