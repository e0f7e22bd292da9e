module github.com/packfinderz/outbox/brokers/rabbitmq

go 1.26.0

require github.com/packfinderz/outbox v0.0.0

require github.com/rabbitmq/amqp091-go v1.16.0 // indirect

replace github.com/packfinderz/outbox => ../../
