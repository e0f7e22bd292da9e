package main

import (
	"fmt"

	"github.com/packfinderz/outbox/destinations/natsjs"
	"github.com/packfinderz/outbox/destinations/natsjs/natstest"
	"github.com/packfinderz/outbox/outboxtest/testserver"
)

// stream is the broker's stream with the messages of the chat.
const stream = "MINICHAT"

// brokerAt is how both sides reach the broker. The stream is made by whoever is there first.
func brokerAt(url string) (natsjs.Config, error) {
	config, err := natsjs.ParseURL(url)
	if err != nil {
		return config, fmt.Errorf("--nats: %w", err)
	}
	config.Stream, config.SubjectPrefix, config.Create = stream, namespace+".", true
	return config, nil
}

// privateBroker is a NATS server of this program's own, for the tour.
func privateBroker() (url string, stop func()) {
	tour := new(testserver.Example)
	return natstest.Bare(tour, natstest.Settings{}).URL(), tour.Done
}
