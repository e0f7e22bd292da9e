package rabbitmq_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/uuid"
	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/destinations/rabbitmq/rabbittest"
	"github.com/packfinderz/outbox/internal/testing/outagetest"
	"github.com/packfinderz/outbox/outboxtest/publishertest"
	"github.com/packfinderz/outbox/outboxtest/tcpproxy"
)

const otherTopic = "payments"

// TestOutages takes RabbitMQ away under a relay.
func TestOutages(t *testing.T) {
	t.Parallel()
	server := rabbittest.New(t)
	t.Run("of a vhost", func(t *testing.T) {
		t.Parallel()
		outagetest.Run(t, func(t testing.TB) outagetest.Destination {
			t.Helper()
			return newOutages(t, server.Vhost(t))
		}, "refused", "hung", "dropped", "TLS broken", "credentials revoked", "right revoked", "exchange deleted",
			"topic deleted", "queue full", "queue hung", "slow")
	})
	t.Run("of a server", func(t *testing.T) {
		t.Parallel()
		outagetest.Run(t, newServerOutages, "killed", "memory alarm")
	})
}

// onExchange has the queues of two topics bound to an exchange.
func onExchange(t testing.TB, broker *rabbittest.Broker, url string) outagetest.Destination {
	t.Helper()
	broker.Declare(t, otherTopic, nil)
	bind(t, broker)
	return outagetest.Destination{
		Publisher:  func(t testing.TB) outbox.Publisher { t.Helper(); return open(t, url+"?exchange=events") },
		OtherTopic: otherTopic,
		Received: func(t testing.TB) (ids []uuid.UUID) {
			t.Helper()
			for _, queue := range []string{publishertest.Topic, otherTopic} {
				for _, r := range broker.ReceivedIn(t, queue) {
					ids = append(ids, r.ID)
				}
			}
			return ids
		},
	}
}

func bind(t testing.TB, broker *rabbittest.Broker) {
	t.Helper()
	broker.Do(t, func(channel *amqp.Channel) error {
		err := channel.ExchangeDeclare("events", amqp.ExchangeTopic, true, false, false, false, nil)
		for _, queue := range []string{publishertest.Topic, otherTopic} {
			err = errors.Join(err, channel.QueueBind(queue, queue, "events", false, nil))
		}
		return err
	})
	broker.Eval(t, "mnesia:sync_log()")
}

func newOutages(t testing.TB, broker *rabbittest.Broker) outagetest.Destination {
	t.Helper()
	vhost := broker.VhostName()
	proxy := tcpproxy.New(t, broker.Address())
	// A user of its own, named as the vhost.
	broker.Eval(t, fmt.Sprintf(`rabbit_auth_backend_internal:add_user(<<"%s">>, <<"first">>, <<"test">>)`, vhost))
	broker.Permit(t, vhost, ".*", ".*")
	d := onExchange(t, broker, "amqp://"+vhost+":first@"+proxy.Address()+"/"+vhost)
	eval := func(format string, args ...any) func(testing.TB) {
		return func(t testing.TB) { t.Helper(); broker.Eval(t, fmt.Sprintf(format, args...)) }
	}
	password := func(t testing.TB, word string) {
		t.Helper()
		broker.Eval(t, fmt.Sprintf(`rabbit_auth_backend_internal:change_password(<<"%s">>, <<"%s">>, <<"test">>)`, vhost, word))
	}
	channel := func(do func(*amqp.Channel) error) func(testing.TB) {
		return func(t testing.TB) { t.Helper(); broker.Do(t, do) }
	}
	limit := func(t testing.TB, messages int) {
		t.Helper()
		broker.Eval(t, fmt.Sprintf(`rabbit_policy:set(<<"%s">>, <<"limit">>, <<"^orders$">>, [{<<"max-length">>, %d}, {<<"overflow">>, <<"reject-publish">>}], 0, <<"queues">>, <<"test">>)`,
			vhost, messages))
	}
	limit(t, 1_000_000) // a limit on a queue that has none before drops messages
	queue := `(fun() -> {ok, Q} = rabbit_amqqueue:lookup(rabbit_misc:r(<<"%s">>, queue, <<"orders">>)), sys:%s(amqqueue:get_pid(Q)) end)()`
	d.Faults = []outagetest.Fault{
		{Name: "refused", Begin: func(testing.TB) { proxy.Cut() }, End: proxy.Restore},
		{Name: "hung", Begin: func(testing.TB) { proxy.Swallow() }, End: func(testing.TB) { proxy.Resume() }},
		{
			// As a network does that loses every packet: what was sent meanwhile never arrives.
			Name: "dropped", Begin: func(testing.TB) { proxy.Swallow() },
			End: func(t testing.TB) { t.Helper(); proxy.Cut(); proxy.Resume(); proxy.Restore(t) },
		},
		{Name: "TLS broken", Begin: func(testing.TB) { proxy.Garble(true) }, End: func(testing.TB) { proxy.Garble(false) }},
		{
			Name:  "credentials revoked",
			Begin: func(t testing.TB) { t.Helper(); password(t, "second"); proxy.Break() },
			End:   func(t testing.TB) { t.Helper(); password(t, "first") },
		},
		{
			Name:  "right revoked",
			Begin: func(t testing.TB) { t.Helper(); broker.Permit(t, vhost, ".*", "^$"); proxy.Break() },
			End:   func(t testing.TB) { t.Helper(); broker.Permit(t, vhost, ".*", ".*") },
		},
		{
			Name:  "exchange deleted",
			Begin: channel(func(c *amqp.Channel) error { return c.ExchangeDelete("events", false, false) }),
			End:   func(t testing.TB) { t.Helper(); bind(t, broker) },
		},
		{
			Name: "topic deleted", Topic: true,
			Begin: channel(func(c *amqp.Channel) error {
				return c.QueueUnbind(publishertest.Topic, publishertest.Topic, "events", nil)
			}),
			End: channel(func(c *amqp.Channel) error {
				return c.QueueBind(publishertest.Topic, publishertest.Topic, "events", false, nil)
			}),
		},
		{
			Name: "queue full", Topic: true,
			Begin: func(t testing.TB) { t.Helper(); limit(t, 0) }, End: func(t testing.TB) { t.Helper(); limit(t, 1_000_000) },
		},
		{Name: "queue hung", Topic: true, Begin: eval(queue, vhost, "suspend"), End: eval(queue, vhost, "resume")},
		{Name: "slow", Slow: true, Begin: func(testing.TB) { proxy.Throttle(20_000) }, End: func(testing.TB) { proxy.Throttle(0) }},
	}
	return d
}

// newServerOutages are the faults of a whole server, which nobody else may use then.
func newServerOutages(t testing.TB) outagetest.Destination {
	t.Helper()
	broker := rabbittest.New(t)
	d := onExchange(t, broker, broker.URL())
	watermark := func(level string) func(testing.TB) {
		return func(t testing.TB) {
			t.Helper()
			broker.Eval(t, "vm_memory_monitor:set_vm_memory_high_watermark("+level+")")
		}
	}
	d.Faults = []outagetest.Fault{
		{Name: "killed", Begin: broker.Stop, End: broker.Start},
		{Name: "memory alarm", Begin: watermark("0.000001"), End: watermark("0.4")},
	}
	return d
}
