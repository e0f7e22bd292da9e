package dest

import (
	"io"

	"github.com/packfinderz/outbox/destinations/gcppubsub"
	"github.com/packfinderz/outbox/destinations/gocloud"
	"github.com/packfinderz/outbox/destinations/kafka"
	"github.com/packfinderz/outbox/destinations/natsjs"
	"github.com/packfinderz/outbox/destinations/rabbitmq"
	"github.com/packfinderz/outbox/destinations/redis"
	"github.com/packfinderz/outbox/destinations/webhook"
)

// brokers are the destinations with a broker, each in a module of its own.
func brokers() []kind {
	return []kind{
		broker("nats", "nats://HOST:4222", "NATS JetStream", natsjs.ParseURL, natsjs.New),
		broker("tls", "tls://HOST:4222", "NATS JetStream, encrypted", natsjs.ParseURL, natsjs.New),
		broker("kafka", "kafka://HOST:9092", "Apache Kafka", kafka.ParseURL, kafka.New),
		broker("gcppubsub", "gcppubsub://PROJECT", "Google Cloud Pub/Sub", gcppubsub.ParseURL, gcppubsub.New),
		broker("amqp", "amqp://HOST:5672/VHOST", "RabbitMQ", rabbitmq.ParseURL, rabbitmq.New),
		broker("amqps", "amqps://HOST:5671/VHOST", "RabbitMQ, encrypted", rabbitmq.ParseURL, rabbitmq.New),
		broker("redis", "redis://HOST:6379", "Redis Streams", redis.ParseURL, redis.New),
		broker("rediss", "rediss://HOST:6379", "Redis Streams, encrypted", redis.ParseURL, redis.New),
		broker("https", "https://HOST/PATH", "webhooks", webhook.ParseURL, webhook.New),
		broker("http", "http://HOST/PATH", "webhooks, not encrypted", webhook.ParseURL, webhook.New),
		broker("awssns", "awssns:///ARN?region=REGION", "Amazon SNS", gocloud.ParseURL, gocloud.New),
		broker("awssqs", "awssqs://QUEUE-URL?region=REGION", "Amazon SQS", gocloud.ParseURL, gocloud.New),
		broker("azuresb", "azuresb://TOPIC", "Azure Service Bus", gocloud.ParseURL, gocloud.New),
	}
}

// broker returns a kind whose module parses the URL into a configuration and opens it.
func broker[C any, P Destination](scheme, usage, about string, parse func(string) (C, error), open func(C) (P, error)) kind {
	return kind{scheme, usage, about, func(to string) (maker, error) {
		config, err := parse(to)
		return func(io.Writer) (Destination, error) { return open(config) }, err
	}}
}
