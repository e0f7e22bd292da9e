package pubsub_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/packfinderz/outbox/destinations/gcppubsub"
	"github.com/packfinderz/outbox/packfinderz/internal/backendtest"
	"github.com/packfinderz/outbox/packfinderz/internal/env"
	"github.com/packfinderz/outbox/packfinderz/internal/pubsub"
)

const credentialsFile = pubsub.CredentialsFileVariable

func read(values map[string]string) error {
	r := env.NewReader(backendtest.Lookup(values))
	pubsub.Read(r)
	return r.Err()
}

// write is a file of the test's own.
func write(t *testing.T, content string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "credentials.json")
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// What cannot work is refused by the name of its variable, without a word of a secret.
func TestRefusals(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, value, says string }{
		{"PACKFINDERZ_PUBSUB_PROJECT", "", "is not set"},
		{"PACKFINDERZ_PUBSUB_PROJECT", "My Project", "gcloud projects list"},
		{"PACKFINDERZ_PUBSUB_PROJECT", "projects/pf", "gcloud projects list"},
		{"GOOGLE_CLOUD_PROJECT", "My Project", "gcloud projects list"},
		{"PUBSUB_EMULATOR_HOST", "localhost", "localhost:8085"},
		{"PUBSUB_EMULATOR_HOST", "http://localhost:8085", "localhost:8085"},
		{"PUBSUB_EMULATOR_HOST", "localhost:99999", "localhost:8085"},
		{"PUBSUB_EMULATOR_HOST", ":8085", "localhost:8085"},
		{credentialsFile, filepath.Join(t.TempDir(), "none.json"), "no such file"},
		{credentialsFile, t.TempDir(), "is a directory"},
		{credentialsFile, write(t, "s3cret"), "no JSON object"},
		{credentialsFile, write(t, `{"private_key": "s3cret"}`), "no JSON object"},
	} {
		values := map[string]string{"PACKFINDERZ_PUBSUB_PROJECT": "pf", test.name: test.value}
		if test.name == "GOOGLE_CLOUD_PROJECT" {
			delete(values, "PACKFINDERZ_PUBSUB_PROJECT")
		}
		err := read(values)
		if !errors.Is(err, env.ErrUsage) || !strings.Contains(err.Error(), test.name+" ") || !strings.Contains(err.Error(), test.says) ||
			strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s=%s: %v", test.name, test.value, err)
		}
	}
}

// What can work is taken; an emulator needs no file, and none is looked for.
func TestTaken(t *testing.T) {
	t.Parallel()
	for _, values := range []map[string]string{
		{"GOOGLE_CLOUD_PROJECT": "my-project"},
		{"PACKFINDERZ_PUBSUB_PROJECT": "example.com:my-project"},
		{"PACKFINDERZ_PUBSUB_PROJECT": "pf", credentialsFile: write(t, `{"type": "external_account"}`)},
		{"PACKFINDERZ_PUBSUB_PROJECT": "pf", "PUBSUB_EMULATOR_HOST": "[::1]:8085", credentialsFile: "none.json"},
	} {
		if err := read(values); err != nil {
			t.Errorf("%v: %v", values, err)
		}
	}
}

// Whatever else the client finds wrong with the settings is a wrong use, too.
func TestOpen(t *testing.T) {
	t.Parallel()
	_, err := pubsub.Open(gcppubsub.Config{Project: "pf", Credentials: "none.json"})
	if !errors.Is(err, env.ErrUsage) || !strings.Contains(err.Error(), pubsub.CredentialsVariable) {
		t.Error(err)
	}
}
