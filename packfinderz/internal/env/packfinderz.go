package env

import (
	"strings"

	"github.com/packfinderz/outbox/packfinderz/pkg/outbox/registry"
)

// What several of the programs read.

// Database is the address of PostgreSQL. DATABASE_URL is what Heroku sets.
func (r *Reader) Database() string { return r.Needed("PACKFINDERZ_DATABASE_URL", "DATABASE_URL") }

// Project is the Google Cloud project of the topics.
func (r *Reader) Project() string {
	return r.Needed("PACKFINDERZ_PUBSUB_PROJECT", "GOOGLE_CLOUD_PROJECT")
}

// Redis is the address of Redis. REDIS_URL is what Heroku sets.
func (r *Reader) Redis() string { return r.Needed(redisNames()...) }

func redisNames() []string { return []string{"PACKFINDERZ_REDIS_URL", "REDIS_URL"} }

// RedisInsecure is whether the certificate of Redis is not checked: those of Heroku are self-signed.
func (r *Reader) RedisInsecure() bool {
	const name = "PACKFINDERZ_REDIS_TLS_INSECURE"
	insecure := r.Bool(name)
	if insecure && !strings.HasPrefix(r.Text("", redisNames()...), "rediss://") {
		r.Refuse(name, "is true, and the address of Redis does not begin with rediss://, so that there is no TLS")
	}
	return insecure
}

// Topics are the names of the topics.
func (r *Reader) Topics() registry.Topics {
	topics := registry.DefaultTopics()
	for name, topic := range map[string]*string{
		"PACKFINDERZ_PUBSUB_DOMAIN_TOPIC":        &topics.Domain,
		"PACKFINDERZ_PUBSUB_ANALYTICS_TOPIC":     &topics.Analytics,
		"PACKFINDERZ_PUBSUB_NOTIFICATIONS_TOPIC": &topics.Notifications,
		"PACKFINDERZ_PUBSUB_BILLING_TOPIC":       &topics.Billing,
	} {
		*topic = r.Text(*topic, name)
		if err := registry.CheckTopic(*topic); err != nil {
			r.Refuse(name, "is not right: %v", err)
		}
	}
	return topics
}

// DomainSubscription is the subscription that the worker consumes.
func (r *Reader) DomainSubscription() string {
	return r.Text("pf-domain-events-worker", "PACKFINDERZ_PUBSUB_DOMAIN_SUBSCRIPTION")
}

// DeadLetterTopic is where the worker puts what it gives up. It has one always: without it an event that can never be handled
// would be delivered for ever, and hold up its key.
func (r *Reader) DeadLetterTopic() string {
	const name = "PACKFINDERZ_PUBSUB_DEAD_LETTER_TOPIC"
	topic := r.Text("pf-domain-events-dead", name)
	if err := registry.CheckTopic(topic); err != nil {
		r.Refuse(name, "is not right: %v", err)
	}
	return topic
}
