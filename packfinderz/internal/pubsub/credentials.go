package pubsub

import (
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"os"

	"github.com/packfinderz/outbox/packfinderz/internal/env"
)

const (
	// CredentialsVariable has the JSON key of a service account itself, because Heroku has no place for a file.
	CredentialsVariable = "PACKFINDERZ_GCP_CREDENTIALS_JSON" //nolint:gosec // the name of a variable
	// CredentialsFileVariable is a file with credentials of any kind, as Google's own programs read it.
	CredentialsFileVariable = "GOOGLE_APPLICATION_CREDENTIALS" //nolint:gosec // the name of a variable
)

// credentials reads CredentialsVariable; empty means Google's application default credentials. Errors never repeat the
// value: it is a secret, and errors are logged.
func credentials(r *env.Reader, emulator bool) string {
	value := r.Text("", CredentialsVariable)
	if value == "" {
		if file := r.Text("", CredentialsFileVariable); file != "" && !emulator {
			if err := checkFile(file); err != nil {
				r.Refuse(CredentialsFileVariable, "cannot be used: %v", err)
			}
		}
		return ""
	}
	if err := checkKey(value); err != nil {
		r.Refuse(CredentialsVariable, "is not right: %v", err)
	}
	if emulator {
		r.Refuse(CredentialsVariable, "and %s are both set: an emulator takes no credentials; unset one", EmulatorVariable)
	}
	return value
}

// checkFile checks only what all kinds of credentials have.
func checkFile(file string) error {
	content, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var head struct {
		Type string `json:"type"`
	}
	if json.Unmarshal(content, &head) != nil || head.Type == "" {
		return fmt.Errorf(`%s is no JSON object with a "type", as Google hands out`, file)
	}
	return nil
}

// checkKey checks what the client would check only at its first request.
func checkKey(value string) error {
	var key struct {
		Type  string `json:"type"`
		Email string `json:"client_email"`
		Key   string `json:"private_key"`
	}
	if json.Unmarshal([]byte(value), &key) != nil {
		return errors.New("it is no JSON object with the key of a service account")
	}
	switch {
	case key.Type != "service_account":
		return errors.New(`its "type" is not "service_account"`)
	case key.Email == "":
		return errors.New(`it has no "client_email"`)
	}
	block, _ := pem.Decode([]byte(key.Key))
	if block == nil {
		return errors.New(`its "private_key" is no PEM block; were the line breaks (\n) lost?`)
	}
	if _, err := x509.ParsePKCS8PrivateKey(block.Bytes); err == nil {
		return nil
	}
	if _, err := x509.ParsePKCS1PrivateKey(block.Bytes); err != nil {
		return errors.New(`its "private_key" is cut off or no RSA key`)
	}
	return nil
}
