package demo

import (
	"fmt"
	"log/slog"

	"github.com/packfinderz/outbox/admin"
	"github.com/packfinderz/outbox/ops"
	"github.com/packfinderz/outbox/pgstream"
)

// anyPort is the console's address where the usual one is taken.
const anyPort = "127.0.0.1:0"

// openConsole serves the console, and sets its address.
func (d *demo) openConsole(logger *slog.Logger) (closeConsole func(), err error) {
	stream, err := ops.Stream(d.pool, pgstream.Stream{}, pgstream.DefaultSubscription)
	if err != nil {
		return nil, err
	}
	console, err := admin.New(admin.Config{Outboxes: []admin.Outbox{{Name: "shop", Outbox: stream}}, Logger: logger})
	if err != nil {
		return nil, err
	}
	server, err := console.Listen(d.config.Console, nil)
	if err != nil && d.config.Console != anyPort {
		server, err = console.Listen(anyPort, nil)
	}
	if err != nil {
		console.Close()
		return nil, fmt.Errorf("serve the console: %w", err)
	}
	d.console = server.URL
	return func() {
		_ = server.Close() // nobody is waiting for a page
		console.Close()
	}, nil
}
