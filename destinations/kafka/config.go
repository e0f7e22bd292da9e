package kafka

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"

	"github.com/packfinderz/outbox/destinations/wire"
)

// DefaultBatchBytes is how much is sent at once. A topic takes record batches of 1 MiB unless
// it is set otherwise.
const DefaultBatchBytes = 900_000

const (
	defaultPort     = "9092"
	defaultClientID = "outbox"
	// maxRecordBytes leaves it to the topic's own limit to refuse a message.
	maxRecordBytes = 64 << 20
	// byCluster leaves a number to the cluster.
	byCluster = -1
)

// Config says where to publish to or to consume from, and how.
type Config struct {
	// Brokers are the addresses at which to ask for the cluster, host:port. At least one.
	Brokers []string
	// SASL is how User and Password are shown: plain, scram-sha-256 or scram-sha-512. Default
	// plain when there is a User.
	SASL string
	// User and Password are what the cluster asks for.
	User, Password string
	// TLS demands encrypted connections; it is on when CA or Cert is set.
	TLS bool
	// CA is a file with the certificates to trust, PEM; the system's when empty.
	CA string
	// Cert and Key are files with a client's certificate and its key, PEM.
	Cert, Key string

	// Create makes topics that are not there.
	Create bool
	// Partitions and Replication are of the topics that are made; the cluster's when zero.
	Partitions, Replication int
	// Format is how the event's fields are written as headers.
	Format wire.Format
	// Compression is snappy, none, gzip, lz4 or zstd. Default snappy.
	Compression string
	// BatchBytes is how much is sent at once, before compression. Default DefaultBatchBytes.
	BatchBytes int
	// ClientID is the name the brokers know the relay by. Default outbox.
	ClientID string
}

// ParseURL reads a destination such as kafka://user:password@host:9092,host2:9092?create=true.
// Its errors never show a secret.
func ParseURL(raw string) (Config, error) {
	config, err := parseURL(raw)
	if err == nil {
		_, err = config.ClientOptions()
	}
	if err != nil {
		return Config{}, fmt.Errorf("kafka destination: %w", err)
	}
	return config, nil
}

func parseURL(raw string) (Config, error) {
	scheme, rest, _ := strings.Cut(raw, "://")
	if scheme != "kafka" {
		return Config{}, errors.New("it begins with kafka://")
	}
	rest, query, _ := strings.Cut(rest, "?")
	var config Config
	if at := strings.LastIndex(rest, "@"); at >= 0 {
		name, password, found := strings.Cut(rest[:at], ":")
		if !found {
			return Config{}, errors.New("a user needs a password: kafka://user:password@host:9092")
		}
		var err, err2 error
		config.User, err = url.PathUnescape(name)
		config.Password, err2 = url.PathUnescape(password)
		if err != nil || err2 != nil {
			return Config{}, errors.New("the user or password has a percent sign that is not followed by two hexadecimal digits")
		}
		rest = rest[at+1:]
	}
	rest = strings.TrimSuffix(rest, "/")
	if strings.ContainsAny(rest, "/#") {
		return Config{}, errors.New("after the hosts only options may follow: kafka://host:9092?create=true")
	}
	if rest != "" {
		config.Brokers = strings.Split(rest, ",")
	}
	options := wire.ParseOptions(query)
	config.SASL = options.Choice("sasl", "", "plain", "scram-sha-256", "scram-sha-512")
	config.TLS = options.Bool("tls")
	config.CA = options.String("ca", "")
	config.Cert = options.String("cert", "")
	config.Key = options.String("key", "")
	config.Create = options.Bool("create")
	config.Partitions = options.Int("partitions", 0)
	config.Replication = options.Int("replication", 0)
	config.Compression = options.Choice("compression", "snappy", "none", "gzip", "lz4", "zstd")
	config.BatchBytes = options.Int("batch-bytes", DefaultBatchBytes)
	config.ClientID = options.String("client-id", defaultClientID)
	config.Format = options.Format()
	return config, options.Err()
}

// withDefaults fills in what is zero and refuses what cannot work.
func (c Config) withDefaults() (Config, error) {
	if len(c.Brokers) == 0 {
		return c, errors.New("no broker is named, as in kafka://host:9092")
	}
	brokers := make([]string, len(c.Brokers))
	for i, broker := range c.Brokers {
		address, err := withPort(broker)
		if err != nil {
			return c, err
		}
		brokers[i] = address
	}
	c.Brokers = brokers
	if c.User != "" && c.SASL == "" {
		c.SASL = "plain"
	}
	if c.Compression == "" {
		c.Compression = "snappy"
	}
	if c.ClientID == "" {
		c.ClientID = defaultClientID
	}
	if c.BatchBytes == 0 {
		c.BatchBytes = DefaultBatchBytes
	}
	if c.Partitions == 0 {
		c.Partitions = byCluster
	}
	if c.Replication == 0 {
		c.Replication = byCluster
	}
	if !c.Create && (c.Partitions != byCluster || c.Replication != byCluster) {
		return c, errors.New("partitions and replication go with create=true")
	}
	if _, err := c.codec(); err != nil {
		return c, err
	}
	switch {
	case c.SASL != "" && c.User == "":
		return c, errors.New("sasl needs a user and a password: kafka://user:password@host:9092")
	case (c.Cert == "") != (c.Key == ""):
		return c, errors.New("a client's certificate and its key go together: cert and key")
	case c.BatchBytes < 0 || c.BatchBytes > maxRecordBytes:
		return c, fmt.Errorf("batch-bytes is %d; it must be above zero and at most %d", c.BatchBytes, maxRecordBytes)
	}
	return c, nil
}

func withPort(broker string) (string, error) {
	host, port, err := net.SplitHostPort(broker)
	if err != nil {
		host, port = strings.Trim(broker, "[]"), defaultPort
		if strings.Contains(host, ":") && !strings.HasPrefix(broker, "[") {
			return "", fmt.Errorf("%q is no host:port", broker)
		}
	}
	if host == "" || strings.ContainsAny(host, " \t\r\n@?") {
		return "", fmt.Errorf("%q is no host:port", broker)
	}
	if _, err := net.LookupPort("tcp", port); err != nil {
		return "", fmt.Errorf("%q is no port", port)
	}
	return net.JoinHostPort(host, port), nil
}
