package main

import (
	"cmp"
	"context"
	"fmt"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/ops"
	"github.com/packfinderz/outbox/ops/doctor"
	"github.com/packfinderz/outbox/packfinderz/internal/httpserver"
)

// checks check what the publisher needs: PostgreSQL, the rights on its tables, and Pub/Sub with the topics.
func checks(
	tables *ops.Outbox, relay *outbox.Relay, topics func(context.Context) (missing, err error),
) []httpserver.Check {
	return []httpserver.Check{
		{Name: "PostgreSQL", Ping: tables.Pool().Ping},
		{Name: "PostgreSQL", Ping: func(ctx context.Context) error { return doctor.Rights(ctx, tables, doctor.UseRelay) }, Tell: true},
		{Name: "PostgreSQL", Ping: func(context.Context) error { return relay.StoreError() }, Tell: true},
		{Name: "Pub/Sub", Ping: func(ctx context.Context) error { return reachable(ctx, relay, topics) }, Tell: true},
	}
}

// reachable checks Pub/Sub and every topic of the registry: while one is missing, its events wait. It also reports
// routes that the relay has closed for another reason.
func reachable(ctx context.Context, relay *outbox.Relay, topics func(context.Context) (missing, err error)) error {
	if missing, err := topics(ctx); err != nil || missing != nil {
		return cmp.Or(missing, err) // with what to do about it in this program
	}
	if err := relay.Check(ctx); err != nil {
		return err
	}
	for _, route := range relay.Routes() {
		if !route.Open {
			return fmt.Errorf("the route %s is closed: %s", route.Name(), route.Error)
		}
	}
	return nil
}
