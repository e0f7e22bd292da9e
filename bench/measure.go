package main

import (
	"fmt"
	"os"
	"slices"
	"time"
)

// rounds is how often a pair is measured; the median of the ratios counts, so that a
// busy moment of the machine does not.
const rounds = 21

// drainRounds is the same for drains of a whole table, which take seconds each.
const drainRounds = 15

// showRound tells the person who waits how far the drains are.
func showRound(round int) { fmt.Fprintf(os.Stderr, "round %d of %d\n", round+1, drainRounds) }

// ratio runs two kinds of work in turn, changing which goes first, and returns the median
// of second's time by first's, with the median times themselves.
func ratio(first, second func() (time.Duration, error)) (median float64, a, b time.Duration, err error) {
	var ratios []float64
	var firsts, seconds []time.Duration
	for round := range rounds + 1 {
		order := []func() (time.Duration, error){first, second}
		if round%2 == 1 {
			slices.Reverse(order)
		}
		var times [2]time.Duration
		for i, work := range order {
			if times[i], err = work(); err != nil {
				return 0, 0, 0, err
			}
		}
		if round%2 == 1 {
			times[0], times[1] = times[1], times[0]
		}
		if round == 0 {
			continue // connections, caches and plans warm up
		}
		firsts, seconds = append(firsts, times[0]), append(seconds, times[1])
		ratios = append(ratios, float64(times[1])/float64(times[0]))
	}
	return middle(ratios), middle(firsts), middle(seconds), nil
}

func middle[T float64 | time.Duration](values []T) T {
	slices.Sort(values)
	return values[len(values)/2]
}
