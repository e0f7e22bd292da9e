package main

import (
	"maps"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/packfinderz/outbox/destinations/redis/redistest"
	"github.com/packfinderz/outbox/outboxtest/testserver"
	"github.com/packfinderz/outbox/packfinderz/internal/backendtest"
)

// The key of a service account is read from a variable; one that cannot work is refused, without being told.
func TestCredentials(t *testing.T) {
	t.Parallel()
	key := backendtest.Credentials(t)
	if c, err := read("PACKFINDERZ_GCP_CREDENTIALS_JSON", key); err != nil || c.pubsub.CredentialsJSON != key {
		t.Errorf("the credentials are not read (%v)", err)
	}
	backendtest.RefusesCredentials(t, func(more map[string]string) map[string]string {
		all := map[string]string{
			"PACKFINDERZ_DATABASE_URL": "postgres:///", "PACKFINDERZ_REDIS_URL": "redis://localhost", "PACKFINDERZ_PUBSUB_PROJECT": "project",
		}
		maps.Copy(all, more)
		return all
	}, run)
}

// Heroku says in PORT where to listen; a variable of our own counts more.
func TestPort(t *testing.T) {
	t.Parallel()
	if c, err := read("PORT", "5000"); err != nil || c.listen != ":5000" {
		t.Errorf("with PORT it listens on %s (%v)", c.listen, err)
	}
	if _, err := read("PORT", "http"); err == nil {
		t.Error("PORT=http is not refused")
	}
}

// Heroku's Redis has TLS with a certificate that nobody knows. The worker takes it when it is told to, and only then; with the
// authority's certificate it need not be told.
func TestRedisTLS(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	certificate := testserver.NewCertificate(t)
	port, err := testserver.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	redistest.New(t, "--tls-port", strconv.Itoa(port), "--tls-cert-file", certificate.Cert, "--tls-key-file", certificate.Key,
		"--tls-ca-cert-file", certificate.CA, "--tls-auth-clients", "no")
	url := "rediss://127.0.0.1:" + strconv.Itoa(port)
	for name, c := range map[string]struct {
		url, insecure string
		status        int
	}{
		"unknown":   {url, "", http.StatusServiceUnavailable},
		"checked":   {url, "false", http.StatusServiceUnavailable},
		"unchecked": {url, "true", http.StatusOK},
		"authority": {url + "?ca=" + certificate.CA, "", http.StatusOK},
	} {
		t.Log(name)
		address := backendtest.Address(t)
		worker := b.start(map[string]string{
			"PACKFINDERZ_REDIS_URL": "", "REDIS_URL": c.url, "PACKFINDERZ_REDIS_TLS_INSECURE": c.insecure, "PACKFINDERZ_WORKER_LISTEN": address,
		})
		backendtest.AwaitStatus(t, address, "/readyz", c.status)
		if answer := backendtest.Answer(t, "http://"+address+"/readyz"); c.status != http.StatusOK && !strings.Contains(answer, "Redis") {
			t.Errorf("not ready because of %s", answer)
		}
		if c.status == http.StatusOK {
			event := backendtest.Pending(t)
			b.send(event)
			b.awaitNotified(event.ID)
		}
		worker.Stop() // it would take the next one's events
	}
	for value, url := range map[string]string{"yes": url, "true": "redis://127.0.0.1"} {
		environment := b.environment(map[string]string{"PACKFINDERZ_REDIS_URL": url, "PACKFINDERZ_REDIS_TLS_INSECURE": value})
		if _, err := readConfig(backendtest.Lookup(environment)); err == nil || !strings.Contains(err.Error(), "PACKFINDERZ_REDIS_TLS_INSECURE") {
			t.Errorf("%s with %s: %v", value, url, err)
		}
	}
}
