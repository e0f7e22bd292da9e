package main

import (
	"errors"
	"net"
	"net/url"
	"strings"
	"testing"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"

	"github.com/packfinderz/outbox/destinations/gcppubsub/pubsubtest"
	"github.com/packfinderz/outbox/outboxtest/await"
	"github.com/packfinderz/outbox/outboxtest/testdb"
	"github.com/packfinderz/outbox/packfinderz/internal/backendtest"
	"github.com/packfinderz/outbox/packfinderz/internal/env"
)

// What is told about a topic that was deleted can be done: the publisher has no URL to add an option to.
func TestDeletedTopicAdvice(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.start()
	await.Until(t, "readiness", func() bool { return b.ready() == 200 })
	deleted := &pubsubpb.DeleteTopicRequest{Topic: pubsubtest.TopicPath("pf-billing-events")}
	if _, err := b.broker.Server.GServer.DeleteTopic(t.Context(), deleted); err != nil {
		t.Fatal(err)
	}
	b.awaitNotReady("gcloud pubsub topics create pf-billing-events --project " + pubsubtest.Project + "), or name another in PACKFINDERZ_PUBSUB_BILLING_TOPIC")
	if answer := backendtest.Answer(t, "http://"+b.listen+"/readyz"); strings.Contains(answer, "create=true") {
		t.Errorf("readiness says %s", answer)
	}
	b.broker.CreateTopic(t, "pf-billing-events")
	await.Until(t, "readiness with the topic back", func() bool { return b.ready() == 200 })
}

// An address that cannot be listened on is told with its variable; a host that there is not is a wrong setting.
func TestListenAdvice(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	for address, usage := range map[string]bool{taken.Addr().String(): false, "nowhere.invalid:8081": true} {
		b := newBed(t)
		b.listen = address
		err := b.run(t.Context())
		if err == nil || errors.Is(err, env.ErrUsage) != usage || !strings.Contains(err.Error(), "PACKFINDERZ_PUBLISHER_LISTEN") {
			t.Errorf("%s: %v", address, err)
		}
	}
}

// Events do not go where the worker puts its dead letters.
func TestDeadLetterTopicIsNoTopicOfEvents(t *testing.T) {
	t.Parallel()
	for _, set := range []map[string]string{
		{"PACKFINDERZ_PUBSUB_BILLING_TOPIC": "pf-domain-events-dead"},
		{"PACKFINDERZ_PUBSUB_BILLING_TOPIC": "given-up", "PACKFINDERZ_PUBSUB_DEAD_LETTER_TOPIC": "given-up"},
	} {
		_, err := readConfig(environment(set))
		if !errors.Is(err, env.ErrUsage) || !strings.Contains(err.Error(), "PACKFINDERZ_PUBSUB_BILLING_TOPIC is") {
			t.Errorf("%v: %v", set, err)
		}
	}
}

// A server without TLS is told as that, by readiness and in the log.
func TestNoTLSAdvice(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	at, err := url.Parse(testdb.NewServer(t).TCPURL("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	at.User, at.RawQuery = url.UserPassword("postgres", "s3cret"), "sslmode=require"
	b.env["PACKFINDERZ_DATABASE_URL"] = at.String()
	b.start()
	b.awaitNotReady("PostgreSQL: server refused TLS connection")
}
