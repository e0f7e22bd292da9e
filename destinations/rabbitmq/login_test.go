package rabbitmq_test

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/destinations/rabbitmq/rabbittest"
	"github.com/packfinderz/outbox/outboxtest/publishertest"
)

func testAuthRefused(t *testing.T, broker *rabbittest.Broker) {
	t.Helper()
	for url, words := range map[string]string{
		"amqp://guest:s3cret@" + broker.Address() + "/" + broker.VhostName(): "refused",
		"amqp://" + broker.Address() + "/none":                               "vhost",
	} {
		publisher := open(t, url)
		wantPings(t, publisher, "misconfigured", map[string]string{publishertest.Topic: "misconfigured"})
		err := publishertest.Publish(t, publisher, publishertest.Messages(1))[0]
		publishertest.Fates(t, []error{err}, "misconfigured")
		publishertest.Fails(t, err, outbox.ClassUnavailable, words)
		if err != nil && strings.Contains(err.Error(), "s3cret") {
			t.Errorf("the password shows: %v", err)
		}
	}
}

// testConnectionLimit has too many connections, which has the code of an unknown vhost and is no
// wrong setting.
func testConnectionLimit(t *testing.T, broker *rabbittest.Broker) {
	t.Helper()
	broker.Eval(t, fmt.Sprintf(`rabbit_vhost_limit:set(<<"%s">>, [{<<"max-connections">>, 0}], <<"test">>)`, broker.VhostName()))
	publisher := open(t, broker.URL())
	wantPings(t, publisher, "away", nil)
	publishertest.Fates(t, publishertest.Publish(t, publisher, publishertest.Messages(1)), "away")
}

// testBrokenLogin has a connection that breaks during the login, of which the client says that the
// password is wrong.
func testBrokenLogin(t *testing.T, broker *rabbittest.Broker) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		for client, err := listener.Accept(); err == nil; client, err = listener.Accept() {
			_, err := client.Read(make([]byte, 8))
			server, dialErr := net.Dial("tcp", broker.Address())
			if err = errors.Join(err, dialErr); err == nil {
				start := make([]byte, 8<<10)
				_, writeErr := server.Write([]byte("AMQP\x00\x00\x09\x01"))
				n, readErr := server.Read(start)
				_, passErr := client.Write(start[:n])
				_, loginErr := client.Read(start) // who is there, and a password
				err = errors.Join(writeErr, readErr, passErr, loginErr, server.Close())
			}
			if err = errors.Join(err, client.Close()); err != nil {
				t.Error(err)
			}
		}
	})
	publisher := open(t, "amqp://"+listener.Addr().String()+"/"+broker.VhostName())
	err = publisher.Ping(t.Context())
	publishertest.Fates(t, []error{err}, "away")
	publishertest.Fails(t, err, outbox.ClassUnavailable, "broke during the login")
	if err := listener.Close(); err != nil {
		t.Error(err)
	}
	serving.Wait()
}
