module github.com/packfinderz/outbox/packfinderz

go 1.26.0

require (
	github.com/google/uuid v1.6.0
	github.com/jackc/pgx/v5 v5.11.0
	github.com/packfinderz/outbox v0.0.0
	github.com/packfinderz/outbox/brokers/redis v0.0.0
	github.com/packfinderz/outbox/outboxgorm v0.0.0
	gorm.io/driver/postgres v1.6.3
	gorm.io/gorm v1.31.2
)

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/jackc/pgpassfile v1.0.0 // indirect
	github.com/jackc/pgservicefile v0.0.0-20240606120523-5a60cdf6a761 // indirect
	github.com/jackc/puddle/v2 v2.2.3 // indirect
	github.com/jinzhu/inflection v1.0.0 // indirect
	github.com/jinzhu/now v1.1.5 // indirect
	github.com/redis/go-redis/v9 v9.23.0 // indirect
	go.uber.org/atomic v1.12.0 // indirect
	go.uber.org/goleak v1.3.0 // indirect
	golang.org/x/sync v0.24.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
	golang.org/x/text v0.43.0 // indirect
)

replace (
	github.com/packfinderz/outbox => ../
	github.com/packfinderz/outbox/brokers/gcppubsub => ../brokers/gcppubsub
	github.com/packfinderz/outbox/brokers/redis => ../brokers/redis
	github.com/packfinderz/outbox/outboxgorm => ../outboxgorm
)
