module github.com/packfinderz/outbox/consume/inbox/redisinbox

go 1.26.0

require (
	github.com/google/uuid v1.6.0
	github.com/packfinderz/outbox v0.1.0
	github.com/packfinderz/outbox/destinations/redis v0.1.0
	github.com/redis/go-redis/v9 v9.23.0
	go.uber.org/goleak v1.3.0
)

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	go.uber.org/atomic v1.12.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
)
