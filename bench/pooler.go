package main

import (
	"context"
	"time"

	"github.com/packfinderz/outbox/internal/testing/pgbouncer"
	"github.com/packfinderz/outbox/layouts/shipped"
	"github.com/packfinderz/outbox/outboxtest/testserver"
	"github.com/packfinderz/outbox/pgstream"
)

// poolerFloor is the rate behind a pooler by the rate without.
const poolerFloor = 0.5

// poolerRounds is how often each drains.
const poolerRounds = 5

// benchPooler drains the stream and every layout directly, and behind PgBouncer in transaction mode, in rounds.
func benchPooler(ctx context.Context, b *bench) error {
	return b.withProgram(ctx, benchPooled)
}

func benchPooled(ctx context.Context, b *bench, outbox *program) error {
	log, err := b.stream(ctx)
	if err != nil {
		return err
	}
	defer log.pool.Close()
	if err := log.load(ctx, relayEvents); err != nil {
		return err
	}
	contenders := []*contender{
		{name: pgstream.LayoutName, events: relayEvents, rounds: poolerRounds, run: func(ctx context.Context) (time.Duration, error) {
			return log.drain(ctx, outbox, 1)
		}},
		{name: pooledName(pgstream.LayoutName), events: relayEvents, rounds: poolerRounds, run: func(ctx context.Context) (time.Duration, error) {
			return pooled(log.url, func(through string) (time.Duration, error) {
				behind := &streamLog{pool: log.pool, url: through, drains: log.drains}
				took, err := behind.drain(ctx, outbox, 1)
				log.drains = behind.drains
				return took, err
			})
		}},
	}
	for _, shipped := range shipped.All() {
		direct := b.layoutDrain(shipped, outbox.drain)
		behind := b.layoutDrain(shipped, func(ctx context.Context, layout, url string, args ...string) (time.Duration, error) {
			return pooled(url, func(through string) (time.Duration, error) { return outbox.drain(ctx, layout, through, args...) })
		})
		name := shipped.Layout.Name
		contenders = append(contenders,
			&contender{name: name, events: relayEvents, rounds: poolerRounds, run: direct},
			&contender{name: pooledName(name), events: relayEvents, rounds: poolerRounds, run: behind})
	}
	times, err := compete(ctx, contenders)
	if err != nil {
		return err
	}
	for i := 0; i < len(contenders); i += 2 {
		name := contenders[i].name
		r := quotient(times[name], times[pooledName(name)])
		b.promise(pooledName(name)+" / directly", r >= poolerFloor, "%.2f (at least %.1f)", r, poolerFloor)
	}
	return b.drop(ctx, log.url)
}

func pooledName(layout string) string { return layout + ", behind PgBouncer" }

// pooled does something through a pooler of its own, which is there before and gone after it.
func pooled(url string, work func(through string) (time.Duration, error)) (time.Duration, error) {
	server := &testserver.Example{}
	defer server.Done()
	return work(pgbouncer.Start(server, url, pgbouncer.Config{Mode: pgbouncer.Transaction}))
}
