module github.com/packfinderz/outbox/layoutfile

go 1.25.0

require github.com/packfinderz/outbox v0.0.0

require (
	github.com/google/uuid v1.6.0 // indirect
	go.yaml.in/yaml/v3 v3.0.5
)

replace github.com/packfinderz/outbox => ../
