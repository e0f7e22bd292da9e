package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// The headers of Standard Webhooks.
const (
	headerID        = "Webhook-Id"
	headerTimestamp = "Webhook-Timestamp"
	headerSignature = "Webhook-Signature"
)

const (
	secretPrefix    = "whsec_"
	signatureScheme = "v1,"
	// The sizes of a secret that Standard Webhooks allows.
	minSecret, maxSecret = 24, 64
)

// Tolerance is how far from now the timestamp of a request may be.
const Tolerance = 5 * time.Minute

// signer signs with every secret it has.
type signer [][]byte

// newSigner parses secrets. Its errors name a secret by its position.
func newSigner(secrets []string) (signer, error) {
	keys := make(signer, len(secrets))
	for i, secret := range secrets {
		encoded, ok := strings.CutPrefix(secret, secretPrefix)
		if !ok {
			return nil, fmt.Errorf("webhook: secret %d of %d does not begin with %s", i+1, len(secrets), secretPrefix)
		}
		key, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil || len(key) < minSecret || len(key) > maxSecret {
			return nil, fmt.Errorf("webhook: secret %d of %d is not %s and %d to %d bytes in base64", i+1, len(secrets), secretPrefix, minSecret, maxSecret)
		}
		keys[i] = key
	}
	return keys, nil
}

// sign adds the headers of Standard Webhooks; the signature only if there is a secret.
func (s signer) sign(header http.Header, id string, at time.Time, body []byte) {
	timestamp := strconv.FormatInt(at.Unix(), 10)
	header.Set(headerID, id)
	header.Set(headerTimestamp, timestamp)
	if len(s) == 0 {
		return
	}
	signatures := make([]string, len(s))
	for i, key := range s {
		signatures[i] = signatureScheme + base64.StdEncoding.EncodeToString(digest(key, id, timestamp, body))
	}
	header.Set(headerSignature, strings.Join(signatures, " "))
}

func digest(key []byte, id, timestamp string, body []byte) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(id + "." + timestamp + "."))
	mac.Write(body)
	return mac.Sum(nil)
}

// Verify is for receivers: it checks that a request was signed with one of the secrets, and that its timestamp is
// within Tolerance of now.
func Verify(secrets []string, header http.Header, body []byte, now time.Time) error {
	keys, err := newSigner(secrets)
	if err != nil {
		return err
	}
	id, timestamp := header.Get(headerID), header.Get(headerTimestamp)
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	if err != nil || id == "" {
		return errors.New("webhook: the id or the timestamp is missing")
	}
	if away := now.Sub(time.Unix(seconds, 0)).Abs(); away > Tolerance {
		return fmt.Errorf("webhook: the timestamp is %s from now, more than %s", away.Round(time.Second), Tolerance)
	}
	for _, key := range keys {
		want := digest(key, id, timestamp, body)
		for signature := range strings.FieldsSeq(header.Get(headerSignature)) {
			encoded, ok := strings.CutPrefix(signature, signatureScheme)
			got, err := base64.StdEncoding.DecodeString(encoded)
			if ok && err == nil && hmac.Equal(got, want) {
				return nil
			}
		}
	}
	return errors.New("webhook: no signature is right")
}
