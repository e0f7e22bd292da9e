package env

import (
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
)

// CredentialsVariable has the key of a service account, as Google hands it out: the JSON itself and not the name of a file, which
// Heroku has no place for.
const CredentialsVariable = "PACKFINDERZ_GCP_CREDENTIALS_JSON" //nolint:gosec // the name of a variable

// EmulatorVariable is the address of a Pub/Sub emulator, as Google's own programs read it.
const EmulatorVariable = "PUBSUB_EMULATOR_HOST"

// Credentials are those of CredentialsVariable. Empty means Google's application default credentials. What is wrong is said without a
// word of the value: it holds a secret, and the start is logged.
func (r *Reader) Credentials() string {
	value := r.Text("", CredentialsVariable)
	if value == "" {
		return ""
	}
	if err := checkCredentials(value); err != nil {
		r.Refuse(CredentialsVariable, "is not right: %v", err)
	}
	if r.Text("", EmulatorVariable) != "" {
		r.Refuse(CredentialsVariable, "and %s are both set: an emulator takes no credentials; unset one", EmulatorVariable)
	}
	return value
}

// checkCredentials reads a key as far as the client does, which would say what is wrong only with the first request.
func checkCredentials(value string) error {
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
