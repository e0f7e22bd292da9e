// Package streams makes missing streams.
package streams

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Create makes a stream for a subject, or gives the subject to the stream of that name.
func Create(ctx context.Context, conn *nats.Conn, name, subject string) error {
	if err := create(ctx, conn, name, subject); err != nil {
		return fmt.Errorf("create stream %s: %w", name, err)
	}
	return nil
}

// Name is the stream that is made for a subject where none is configured: it is named after the
// subject, without the characters that the name of a stream cannot have.
func Name(subject string) string {
	return strings.NewReplacer(".", "_", "*", "_", ">", "_", "/", "_", `\`, "_").Replace(subject)
}

func create(ctx context.Context, conn *nats.Conn, name, subject string) error {
	js, err := jetstream.New(conn)
	if err != nil {
		return err
	}
	stream, err := js.Stream(ctx, name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		_, err = js.CreateStream(ctx, jetstream.StreamConfig{Name: name, Subjects: []string{subject}, Storage: jetstream.FileStorage})
		return err
	}
	if err != nil {
		return err
	}
	config := stream.CachedInfo().Config
	if slices.Contains(config.Subjects, subject) {
		return nil // somebody else was faster
	}
	config.Subjects = append(config.Subjects, subject)
	_, err = js.UpdateStream(ctx, config)
	return err
}
