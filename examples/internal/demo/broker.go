package demo

import (
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/packfinderz/outbox/destinations/natsjs"
)

const (
	topic       = "orders"
	streamName  = "SHOP"
	brokerReady = 20 * time.Second
)

// broker is a NATS server in this process, with JetStream on disk.
type broker struct {
	folder string
	port   int
	server *server.Server
}

// start starts the server, at the same address as before.
func (b *broker) start() error {
	port := b.port
	if port == 0 {
		port = server.RANDOM_PORT
	}
	running, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: port, JetStream: true, StoreDir: b.folder, NoSigs: true, NoLog: true,
	})
	if err != nil {
		return fmt.Errorf("make a NATS server: %w", err)
	}
	running.Start()
	if !running.ReadyForConnections(brokerReady) {
		running.Shutdown()
		return errors.New("the NATS server does not get ready")
	}
	b.server = running
	_, err = fmt.Sscanf(running.Addr().String(), "127.0.0.1:%d", &b.port)
	return err
}

// stop takes the server away. Its files stay.
func (b *broker) stop() {
	b.server.Shutdown()
	b.server.WaitForShutdown()
}

func (b *broker) address() string { return fmt.Sprintf("127.0.0.1:%d", b.port) }

// config is how to reach it.
func (b *broker) config() natsjs.Config {
	return natsjs.Config{Addresses: []string{b.address()}, Stream: streamName, Create: true}
}
