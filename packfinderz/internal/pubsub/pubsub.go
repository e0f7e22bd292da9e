// Package pubsub has what the publisher and the worker share of Pub/Sub: its settings, and errors that say what to do.
package pubsub

import (
	"fmt"
	"strings"

	"github.com/packfinderz/outbox/destinations/gcppubsub"
	"github.com/packfinderz/outbox/packfinderz/internal/env"
)

const (
	// ProjectVariable is the Google Cloud project of the topics.
	ProjectVariable = "PACKFINDERZ_PUBSUB_PROJECT"
	// EmulatorVariable is the address of a Pub/Sub emulator, as Google's own programs read it.
	EmulatorVariable = "PUBSUB_EMULATOR_HOST"
)

// Read reads the address and the credentials of Pub/Sub.
func Read(r *env.Reader) gcppubsub.Config {
	config := gcppubsub.Config{Project: project(r), Endpoint: emulator(r)}
	config.Insecure = config.Endpoint != "" // an emulator knows no TLS
	config.CredentialsJSON = credentials(r, config.Insecure)
	return config
}

func project(r *env.Reader) string {
	name, value := r.First(ProjectVariable, "GOOGLE_CLOUD_PROJECT")
	if value == "" {
		r.Refuse(name, "is not set")
		return ""
	}
	if _, err := (gcppubsub.Config{Project: value}).ClientOptions(); err != nil {
		r.Refuse(name, "is %q; it must be the id of a Google Cloud project, such as my-project: see gcloud projects list", value)
	}
	return value
}

func emulator(r *env.Reader) string {
	value := r.Text("", EmulatorVariable)
	if host, port, ok := env.SplitAddress(value); value != "" && (!ok || host == "" || port == 0) {
		r.Refuse(EmulatorVariable, "is %q; it must be a host and a port, such as localhost:8085, or unset", value)
	}
	return value
}

// Open returns a publisher. It does not connect, so an error is about the settings.
func Open(config gcppubsub.Config) (*gcppubsub.Publisher, error) {
	broker, err := gcppubsub.New(config)
	if err != nil {
		return nil, fmt.Errorf("%w: %w; set %s or %s to the credentials of a service account, or %s to the address of an emulator",
			env.ErrUsage, err, CredentialsVariable, CredentialsFileVariable, EmulatorVariable)
	}
	return broker, nil
}

// MissingTopic says how to create a topic, and which variables name another.
func MissingTopic(project, topic string, variables ...string) error {
	return fmt.Errorf("Pub/Sub has no topic %[1]s: create it (gcloud pubsub topics create %[1]s --project %[2]s), or name another in %[3]s",
		topic, project, strings.Join(variables, " and "))
}
