package backendtest

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/packfinderz/outbox/packfinderz/internal/env"
	"github.com/packfinderz/outbox/packfinderz/internal/program"
	"github.com/packfinderz/outbox/packfinderz/internal/pubsub"
)

// Credentials is the key of a service account, as Google hands it out, of an account that there is not.
func Credentials(t testing.TB) string {
	t.Helper()
	const bits = 2048
	key, err := rsa.GenerateKey(rand.Reader, bits)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return serviceAccount(t, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded})))
}

func serviceAccount(t testing.TB, key string) string {
	t.Helper()
	doc, err := json.Marshal(map[string]string{ //nolint:gosec // G101: the key is the caller's
		"type": "service_account", "project_id": "packfinderz", "client_email": "outbox@packfinderz.iam.gserviceaccount.com",
		"private_key": key, "token_uri": "http://127.0.0.1:1/token",
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(doc)
}

// refusal bounds the wait for a refusal that does not come.
const refusal = 20 * time.Second

// RefusesCredentials has a program refuse keys that cannot work, at its start, by the variable's name and with nothing of the value.
func RefusesCredentials(
	t *testing.T, environment func(more map[string]string) map[string]string,
	run func(ctx context.Context, args []string, lookup program.Lookup, log *slog.Logger) error,
) {
	t.Helper()
	const secret = "s3cret"
	// A program that takes the key goes on, and is ended here.
	ctx, cancel := context.WithTimeout(t.Context(), refusal)
	defer cancel()
	for name, value := range map[string]string{
		"no JSON":         secret,
		"a list":          `["` + secret + `"]`,
		"cut off":         `{"type": "service_account", "private_key": "` + secret,
		"a wrong type":    `{"type": 1, "private_key": "` + secret + `"}`,
		"a user's":        `{"type": "authorized_user", "client_secret": "` + secret + `"}`,
		"no account":      `{"type": "service_account", "private_key": "` + secret + `"}`,
		"a key as it is":  serviceAccount(t, secret),
		"a key that ends": serviceAccount(t, "-----BEGIN PRIVATE KEY-----\ns3cret++\n-----END PRIVATE KEY-----\n"),
		"lost line breaks": serviceAccount(t, "-----BEGIN PRIVATE KEY-----"+secret+
			"-----END PRIVATE KEY-----"),
	} {
		var log strings.Builder
		err := run(ctx, nil, Lookup(environment(map[string]string{pubsub.CredentialsVariable: value, pubsub.EmulatorVariable: ""})),
			slog.New(slog.NewTextHandler(&log, nil)))
		if !errors.Is(err, env.ErrUsage) || !strings.Contains(err.Error(), pubsub.CredentialsVariable) || strings.Contains(err.Error()+log.String(), secret) {
			t.Errorf("%s: the error is %v, and the log %s", name, err, log.String())
		}
	}
	both := environment(map[string]string{pubsub.CredentialsVariable: Credentials(t), pubsub.EmulatorVariable: "127.0.0.1:1"})
	if err := run(ctx, nil, Lookup(both), slog.New(slog.DiscardHandler)); !errors.Is(err, env.ErrUsage) {
		t.Errorf("with an emulator: %v", err)
	}
}
