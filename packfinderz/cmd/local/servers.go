package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"cloud.google.com/go/pubsub/v2/pstest"

	"github.com/packfinderz/outbox/outboxtest/testdb"
	"github.com/packfinderz/outbox/packfinderz/internal/env"
	"github.com/packfinderz/outbox/packfinderz/internal/migrate"
	"github.com/packfinderz/outbox/packfinderz/internal/program"
)

// project is the Pub/Sub server's; it accepts any.
const project = "packfinderz-local"

// servers are the servers that were started.
type servers struct {
	// environment has the variables that name them.
	environment []string
	closers     []func() error
}

// lend starts what the environment does not name, and says so.
func lend(ctx context.Context, lookup program.Lookup, say func(format string, args ...any)) (*servers, error) {
	s := &servers{}
	named := env.NewReader(lookup)
	if named.Text("", "PACKFINDERZ_DATABASE_URL", "DATABASE_URL") == "" {
		url, err := s.postgres(ctx)
		if err != nil {
			return s, err
		}
		say("PACKFINDERZ_DATABASE_URL is not set: this is a private PostgreSQL, gone when the program ends")
		say("look inside with: psql '%s'", url)
	}
	if named.Text("", "PUBSUB_EMULATOR_HOST", "PACKFINDERZ_PUBSUB_PROJECT", "GOOGLE_CLOUD_PROJECT") == "" {
		address, err := s.pubsub(ctx, named)
		if err != nil {
			return s, err
		}
		say("PACKFINDERZ_PUBSUB_PROJECT is not set: this is a Pub/Sub server in a process of this machine, gone when the program ends")
		say("others find it with PUBSUB_EMULATOR_HOST=%s PACKFINDERZ_PUBSUB_PROJECT=%s", address, project)
	}
	return s, named.Err()
}

// postgres starts a server and makes the backend's tables.
func (s *servers) postgres(ctx context.Context) (url string, err error) {
	server, err := testdb.Start(ctx)
	if err != nil {
		return "", fmt.Errorf("start a private PostgreSQL: %w", err)
	}
	s.closers = append(s.closers, server.Stop)
	url = server.URL("postgres")
	if err := migrate.Up(ctx, url, slog.New(slog.DiscardHandler)); err != nil {
		return "", err
	}
	s.environment = append(s.environment, "PACKFINDERZ_DATABASE_URL="+url)
	return url, nil
}

// pubsub starts a server with the topics, that of dead letters, and the worker's subscription.
func (s *servers) pubsub(ctx context.Context, named *env.Reader) (address string, err error) {
	server := pstest.NewServerWithAddress("127.0.0.1:0")
	s.closers = append(s.closers, server.Close)
	topics := named.Topics()
	for _, topic := range append(topics.Names(), named.DeadLetterTopic()) {
		if _, err := server.GServer.CreateTopic(ctx, &pubsubpb.Topic{Name: "projects/" + project + "/topics/" + topic}); err != nil {
			return "", fmt.Errorf("create topic %s: %w", topic, err)
		}
	}
	_, err = server.GServer.CreateSubscription(ctx, &pubsubpb.Subscription{
		Name:  "projects/" + project + "/subscriptions/" + named.DomainSubscription(),
		Topic: "projects/" + project + "/topics/" + topics.Domain, EnableMessageOrdering: true,
	})
	if err != nil {
		return "", fmt.Errorf("create subscription %s: %w", named.DomainSubscription(), err)
	}
	s.environment = append(s.environment, "PUBSUB_EMULATOR_HOST="+server.Addr, "PACKFINDERZ_PUBSUB_PROJECT="+project)
	return server.Addr, nil
}

// close ends them, the last first.
func (s *servers) close() error {
	var errs []error
	for _, closer := range slices.Backward(s.closers) {
		errs = append(errs, closer())
	}
	return errors.Join(errs...)
}
