// Package ops is for the person on call: look at an outbox, find events, and retry, replay, hold, release and purge
// them. The command line, the JSON API, the console and the doctor are built on it.
//
// An Outbox is a queue table or a subscription of a stream. Describe says what it cannot do, and why. Every query
// is bounded: with millions of events a number becomes "at least" or an estimate, and a search that no index serves
// reads a part of the events and says how far it got.
package ops

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox/layouts"
	"github.com/packfinderz/outbox/ops/audit"
	"github.com/packfinderz/outbox/ops/internal/stream"
	"github.com/packfinderz/outbox/ops/internal/table"
	"github.com/packfinderz/outbox/pgstream"
)

// Outbox is a queue table or a subscription of a stream, made by Table or Stream. It is safe for concurrent use.
type Outbox struct {
	pool    *pgxpool.Pool
	backend backend
	about   Description
	log     *audit.Log
	place   Place
}

// Place says where an outbox's tables are. One of its fields is set.
type Place struct {
	// Layout is the layout of a queue table.
	Layout *layouts.Layout
	// Stream is the stream of a subscription.
	Stream *pgstream.Stream
}

// Table returns the queue table of a layout. It does not connect.
func Table(pool *pgxpool.Pool, layout layouts.Layout) (*Outbox, error) {
	backend, err := table.New(pool, layout)
	if err != nil {
		return nil, err
	}
	return newOutbox(pool, backend, layout.Schema, Place{Layout: &layout}), nil
}

// Stream returns a subscription of a stream; an empty name is the default subscription. It does not connect.
func Stream(pool *pgxpool.Pool, place pgstream.Stream, subscription string) (*Outbox, error) {
	backend, err := stream.New(pool, place, cmp.Or(subscription, pgstream.DefaultSubscription))
	if err != nil {
		return nil, err
	}
	return newOutbox(pool, backend, place.Schema, Place{Stream: &place}), nil
}

func newOutbox(pool *pgxpool.Pool, backend backend, schema string, place Place) *Outbox {
	about := backend.Describe()
	return &Outbox{pool, backend, about, audit.New(pool, schema, about.Name), place}
}

// Describe says what the outbox is and what it can do. It does not query the database.
func (o *Outbox) Describe() Description { return o.about }

// Pool returns the pool that the outbox was made with.
func (o *Outbox) Pool() *pgxpool.Pool { return o.pool }

// Place says where the outbox's tables are.
func (o *Outbox) Place() Place { return o.place }

// Verify checks that the tables, and the subscription of a stream, exist and are what this program needs.
func (o *Outbox) Verify(ctx context.Context) error { return o.backend.Verify(ctx) }

// wrap adds what failed to an error. Errors of our own packages already say it.
func (o *Outbox) wrap(doing string, err error) error {
	if err == nil || strings.HasPrefix(err.Error(), "outbox: ") {
		return err
	}
	return fmt.Errorf("outbox: %s of %s: %w", doing, o.about.Name, err)
}
