package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/outboxtest/await"
	"github.com/packfinderz/outbox/outboxtest/testserver"
)

// side is one of the services as a process, on one database and one address.
type side struct {
	*testing.T
	args    []string
	pool    *pgxpool.Pool
	url     string
	ready   func() error
	process *testserver.Process
	kills   int
}

// newSide starts one. Ready asks it for something.
func newSide(t *testing.T, program, serve, nats string, ready func(url string) error) *side {
	t.Helper()
	port, err := testserver.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	database, address := pgtest.URL(t), fmt.Sprintf("127.0.0.1:%d", port)
	s := &side{
		T: t, args: []string{program, "--serve", serve, "--database", database, "--nats", nats, "--listen", address},
		pool: pgtest.Connect(t, database), url: "http://" + address,
	}
	s.ready = func() error { return ready(s.url) }
	s.start()
	return s
}

// start runs it, and waits until it serves.
func (s *side) start() {
	s.Helper()
	process, err := testserver.Start(exec.Command(s.args[0], s.args[1:]...), filepath.Join(s.TempDir(), "log"))
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(process.Kill)
	if err := process.AwaitReady(time.Minute, s.ready); err != nil {
		s.Fatal(err)
	}
	s.process = process
}

// kill ends it without a word, and returns when it is gone.
func (s *side) kill() {
	s.process.Kill()
	s.kills++
}

// services are both sides, each with its way to the broker, and a client.
func services(t *testing.T, chatNATS, billingNATS string) (chat, billing *side, c *client) {
	t.Helper()
	program, probe := build(t), &client{}
	t.Cleanup(probe.http.CloseIdleConnections)
	chat = newSide(t, program, "chat", chatNATS, func(url string) error {
		return probe.call(t.Context(), http.MethodGet, url+"/outbox", nil, nil)
	})
	billing = newSide(t, program, "billing", billingNATS, func(url string) error {
		return probe.call(t.Context(), http.MethodGet, url+"/accounts/"+uuid.NewString(), nil, nil)
	})
	c = &client{chat: chat.url, billing: billing.url}
	t.Cleanup(c.http.CloseIdleConnections)
	return chat, billing, c
}

// retried sends a request until the service answers, as clients do. A refusal is an answer.
func retried(ctx context.Context, send func() error) (err error) {
	over := await.Poll(ctx, func() bool {
		err = send()
		return err == nil || errors.As(err, new(*refusal))
	})
	return errors.Join(over, err)
}
