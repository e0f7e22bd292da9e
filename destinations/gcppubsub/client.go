package gcppubsub

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"time"

	apiv1 "cloud.google.com/go/pubsub/v2/apiv1"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
)

const emulatorHost = "PUBSUB_EMULATOR_HOST"

// dial makes the client. No connection is made before the first request.
func dial(config Config) (*apiv1.TopicAdminClient, error) {
	options, err := config.ClientOptions()
	if err != nil {
		return nil, err
	}
	if config.Client != nil {
		// The given client itself would repeat every call by its own rules.
		options = []option.ClientOption{option.WithGRPCConn(config.Client.Connection())} //nolint:staticcheck // there is no other way to it
	}
	client, err := apiv1.NewTopicAdminClient(context.Background(), options...)
	if err != nil {
		return nil, fmt.Errorf("set up the client: %w", err)
	}
	// What is repeated, and for how long, is decided here and not by the client's defaults.
	client.CallOptions = &apiv1.TopicAdminCallOptions{}
	return client, nil
}

// ClientOptions returns the options of a client that reaches the service as the publisher does. It rejects a
// configuration that cannot work.
func (c Config) ClientOptions() ([]option.ClientOption, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	options := []option.ClientOption{
		option.WithTelemetryDisabled(),
		option.WithGRPCConnectionPool(min(runtime.GOMAXPROCS(0), 4)),
		// The default is to wait up to two minutes before the next connection.
		option.WithGRPCDialOption(grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 2 * time.Second},
			MinConnectTimeout: 5 * time.Second,
		})),
		// Timeout also bounds how long sent bytes may stay unacknowledged, which detects a machine that vanished.
		// The service does not welcome more pings.
		option.WithGRPCDialOption(grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 5 * time.Minute, Timeout: 10 * time.Second})),
	}
	emulator := os.Getenv(emulatorHost) != ""
	if c.Endpoint != "" {
		options = append(options, option.WithEndpoint(c.Endpoint))
	}
	switch {
	case c.Insecure:
		return append(options, option.WithoutAuthentication(),
			option.WithGRPCDialOption(grpc.WithTransportCredentials(insecure.NewCredentials()))), nil
	case emulator && c.Endpoint != "":
		// The client would go to the endpoint without TLS.
		return nil, errors.New("endpoint and " + emulatorHost + " are both set: unset one, or add insecure=true for an emulator at the endpoint")
	case emulator || c.Credentials+c.CredentialsJSON == "":
		return options, nil
	}
	credentials, err := c.credentials()
	if err != nil {
		return nil, err
	}
	return append(options, credentials), nil
}

// credentials are of any kind that Google hands out.
func (c Config) credentials() (option.ClientOption, error) {
	content, file := []byte(c.CredentialsJSON), "CredentialsJSON"
	if c.Credentials != "" {
		var err error
		if content, err = os.ReadFile(c.Credentials); err != nil {
			return nil, fmt.Errorf("credentials: %w", err)
		}
		file = c.Credentials
	}
	var head struct {
		Type option.CredentialsType `json:"type"`
	}
	// What is wrong is not repeated: the content is a secret.
	if json.Unmarshal(content, &head) != nil {
		return nil, fmt.Errorf("credentials: %s is not JSON", file)
	}
	known := []option.CredentialsType{option.ServiceAccount, option.AuthorizedUser, option.ImpersonatedServiceAccount, option.ExternalAccount}
	if !slices.Contains(known, head.Type) {
		return nil, fmt.Errorf("credentials: the type in %s is none of %v", file, known)
	}
	return option.WithAuthCredentialsJSON(head.Type, content), nil
}
