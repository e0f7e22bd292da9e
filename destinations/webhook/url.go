package webhook

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"

	"github.com/packfinderz/outbox/destinations/wire"
)

// SecretVariable is the environment variable with the secrets, if the URL names no file.
const SecretVariable = "OUTBOX_WEBHOOK_SECRET" //nolint:gosec // the name of the variable, not a secret

// ParseURL reads a destination. Its options stand in the fragment, which is never sent, so
// that none is taken for a parameter of the receiver's:
//
//	https://example.com/hook?own=1#format=cloudevents&timeout=5s&secret-file=/run/secrets/hook
//
// The files that it names are read now.
func ParseURL(raw string) (Config, error) {
	bare, fragment, _ := strings.Cut(raw, "#")
	if _, err := url.ParseQuery(fragment); err != nil {
		return Config{}, errors.New("webhook: the options after # are not written as name=value&name=value")
	}
	o := wire.ParseOptions(fragment)
	secrets := strings.TrimSpace(o.Secret("secret-file"))
	config := Config{
		URL: bare, Authorization: strings.TrimSpace(o.Secret("authorization-file")),
		TLS: o.Certificates("ca-file", "cert-file", "key-file"), AllowPrivate: o.Bool("allow-private"),
		Timeout: o.Duration("timeout", DefaultTimeout), Concurrency: o.Int("concurrency", DefaultConcurrency), Format: o.Format(),
	}
	terminal := o.String("terminal", "")
	if err := o.Err(); err != nil {
		return Config{}, fmt.Errorf("webhook: %w", err)
	}
	if secrets == "" && o.Has("secret-file") {
		return Config{}, errors.New("webhook: the file that secret-file names is empty")
	}
	if list := strings.Fields(cmp.Or(secrets, os.Getenv(SecretVariable))); len(list) > 0 {
		config.Secrets = list
	}
	var err error
	if config.Terminal, err = parseStatuses(terminal); err != nil {
		return Config{}, err
	}
	// Reject what New would reject before anything is opened.
	return config, config.validate()
}

// parseStatuses reads a list such as 400,422.
func parseStatuses(text string) (list []int, err error) {
	if text == "" {
		return nil, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		status, err := strconv.Atoi(part)
		if err != nil {
			return nil, fmt.Errorf("webhook: terminal=%s is no list of statuses; it looks like terminal=400,422", text)
		}
		list = append(list, status)
	}
	return list, nil
}
