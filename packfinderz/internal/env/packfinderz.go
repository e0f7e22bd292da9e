package env

import (
	"slices"
	"strings"

	"github.com/packfinderz/outbox/packfinderz/pkg/outbox/registry"
)

// Redis reads the address of Redis. Heroku sets REDIS_URL.
func (r *Reader) Redis() string { return r.Needed(redisNames()...) }

func redisNames() []string { return []string{"PACKFINDERZ_REDIS_URL", "REDIS_URL"} }

// RedisInsecure reads whether to skip the check of Redis' certificate: Heroku's are self-signed.
func (r *Reader) RedisInsecure() bool {
	const name = "PACKFINDERZ_REDIS_TLS_INSECURE"
	insecure := r.Bool(name)
	if insecure && !strings.HasPrefix(r.Text("", redisNames()...), "rediss://") {
		r.Refuse(name, "is true, and the address of Redis does not begin with rediss://, so that there is no TLS")
	}
	return insecure
}

// Topics reads the names of the topics.
func (r *Reader) Topics() registry.Topics {
	topics := registry.DefaultTopics()
	for name, topic := range topicVariables(&topics) {
		*topic = r.Text(*topic, name)
		if err := registry.CheckTopic(*topic); err != nil {
			r.Refuse(name, "is not right: %v", err)
		}
	}
	return topics
}

func topicVariables(topics *registry.Topics) map[string]*string {
	return map[string]*string{
		"PACKFINDERZ_PUBSUB_DOMAIN_TOPIC":        &topics.Domain,
		"PACKFINDERZ_PUBSUB_ANALYTICS_TOPIC":     &topics.Analytics,
		"PACKFINDERZ_PUBSUB_NOTIFICATIONS_TOPIC": &topics.Notifications,
		"PACKFINDERZ_PUBSUB_BILLING_TOPIC":       &topics.Billing,
	}
}

// TopicVariables returns the variables that name a topic; several may name the same one.
func TopicVariables(topics registry.Topics, topic string) (names []string) {
	for name, value := range topicVariables(&topics) {
		if *value == topic {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// DomainSubscriptionVariable is the subscription that the worker consumes.
const DomainSubscriptionVariable = "PACKFINDERZ_PUBSUB_DOMAIN_SUBSCRIPTION"

// DomainSubscription reads DomainSubscriptionVariable.
func (r *Reader) DomainSubscription() string {
	subscription := r.Text("pf-domain-events-worker", DomainSubscriptionVariable)
	if registry.CheckTopic(subscription) != nil { // the rules are the same
		r.Refuse(DomainSubscriptionVariable, "is %q; the name of a Pub/Sub subscription has 3 to 255 letters, digits and ._~+%%-, "+
			"and begins with a letter and not with goog", subscription)
	}
	return subscription
}

// DeadLetterTopicVariable is the topic for events that the worker cannot handle.
const DeadLetterTopicVariable = "PACKFINDERZ_PUBSUB_DEAD_LETTER_TOPIC"

// DeadLetterTopic reads DeadLetterTopicVariable. There always is one: without it, an event that can never be handled
// would be delivered for ever, and block its key.
func (r *Reader) DeadLetterTopic() string {
	topic := r.Text("pf-domain-events-dead", DeadLetterTopicVariable)
	if err := registry.CheckTopic(topic); err != nil {
		r.Refuse(DeadLetterTopicVariable, "is not right: %v", err)
	}
	return topic
}
