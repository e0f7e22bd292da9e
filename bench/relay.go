package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/packfinderz/outbox/bench/internal/peers"
	"github.com/packfinderz/outbox/layouts/shipped"
)

const (
	relayEvents = 200_000
	riverFloor  = 3.0 // times as fast as river
	bareFloor   = 0.8 // of the bare loop of the same SQL
)

// benchRelay measures a relay: its rate beside others, with delivered rows in its table,
// its latency, and what it costs while it idles and while a million events wait.
func benchRelay(ctx context.Context, b *bench) error {
	return b.withProgram(ctx, benchRates, benchHistory, benchLatency, benchIdle, benchMemory)
}

// withProgram runs the parts of a bench with the outbox program, built for them.
func (b *bench) withProgram(ctx context.Context, parts ...func(context.Context, *bench, *program) error) error {
	outbox, err := buildProgram(ctx)
	if err != nil {
		return err
	}
	defer outbox.remove()
	for _, part := range parts {
		if err := part(ctx, b, outbox); err != nil {
			return err
		}
	}
	return nil
}

// contender is something that consumes events, in a database of its own.
type contender struct {
	name   string
	events int
	run    func(ctx context.Context) (time.Duration, error)
	// rounds is how often it runs, at the most.
	rounds int
	times  []time.Duration
}

// compete lets the contenders run in turn, changing who goes first, prints their rates, and
// returns how long each took, by name, for a thousand events.
func compete(ctx context.Context, contenders []*contender) (map[string][]time.Duration, error) {
	for round := range drainRounds {
		showRound(round)
		order := slices.Clone(contenders)
		if round%2 == 1 {
			slices.Reverse(order)
		}
		for _, c := range order {
			if round >= c.rounds {
				continue
			}
			took, err := c.run(ctx)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", c.name, err)
			}
			c.times = append(c.times, took)
		}
	}
	times := make(map[string][]time.Duration)
	for _, c := range contenders {
		for _, took := range c.times {
			times[c.name] = append(times[c.name], took/time.Duration(c.events/1000))
		}
		fmt.Printf("%-44s %6.0f events/s\n", c.name, rate(c.events, middle(slices.Clone(c.times))))
	}
	return times, nil
}

// benchRates drains the same number of events with the outbox program, with the bare loop
// of its SQL and with the peers, in rounds.
func benchRates(ctx context.Context, b *bench, outbox *program) error {
	contenders := b.peers(peers.River)
	for _, shipped := range shipped.All() {
		contenders = append(contenders, b.layoutPair(shipped, outbox)...)
	}
	times, err := compete(ctx, contenders)
	if err != nil {
		return err
	}
	for _, shipped := range shipped.All() {
		name := shipped.Layout.Name
		river, bare := quotient(times[peers.River], times[name]), quotient(times[bareName(name)], times[name])
		b.promise(name+": relay / river", river >= riverFloor, "%.1f (at least %.1f)", river, riverFloor)
		b.promise(name+": relay / bare loop", bare >= bareFloor, "%.2f (at least %.2f)", bare, bareFloor)
	}
	return nil
}

// peers are the others, each tuned. One to whom nothing is promised runs once.
func (b *bench) peers(promised ...string) (contenders []*contender) {
	for _, peer := range peers.All() {
		rounds := 1
		if slices.Contains(promised, peer.Name) {
			rounds = drainRounds
		}
		contenders = append(contenders, &contender{
			name: peer.Name, events: relayEvents, rounds: rounds,
			run: func(ctx context.Context) (time.Duration, error) {
				url, err := b.database(ctx)
				if err != nil {
					return 0, err
				}
				took, err := peer.Run(ctx, url, peers.Workload{Events: relayEvents, Payload: payload()})
				if err != nil {
					return 0, err
				}
				return took, b.drop(ctx, url)
			},
		})
	}
	return contenders
}

// layoutPair are the relay on a layout and its bare loop.
func (b *bench) layoutPair(shipped shipped.Layout, outbox *program) []*contender {
	layout := shipped.Layout.Name
	bare := func(ctx context.Context, layout, url string, _ ...string) (time.Duration, error) {
		return runBare(ctx, layout, url)
	}
	return []*contender{
		{name: layout, events: relayEvents, rounds: drainRounds, run: b.layoutDrain(shipped, outbox.drain)},
		{name: bareName(layout), events: relayEvents, rounds: drainRounds, run: b.layoutDrain(shipped, bare)},
	}
}

// layoutDrain loads a layout's table anew, has it drained, and looks whether it was.
func (b *bench) layoutDrain(
	shipped shipped.Layout, drain func(ctx context.Context, layout, url string, args ...string) (time.Duration, error),
) func(context.Context) (time.Duration, error) {
	return func(ctx context.Context) (time.Duration, error) {
		layout := shipped.Layout.Name
		url, err := b.loaded(ctx, shipped, relayEvents)
		if err != nil {
			return 0, err
		}
		took, err := drain(ctx, layout, url)
		if err != nil {
			return 0, err
		}
		if err := drained(ctx, layout, url); err != nil {
			return 0, err
		}
		return took, b.drop(ctx, url)
	}
}

func bareName(layout string) string { return layout + ", bare loop" }

func rate(events int, took time.Duration) float64 { return float64(events) / took.Seconds() }

// quotient is the median of a's times by b's, round by round.
func quotient(a, b []time.Duration) float64 {
	var ratios []float64
	for i := range a {
		ratios = append(ratios, float64(a[i])/float64(b[i]))
	}
	return middle(ratios)
}
