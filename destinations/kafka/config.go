package kafka

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"

	"github.com/packfinderz/outbox/destinations/wire"
)

// Defaults of Config.
const (
	// DefaultBatchBytes fits a topic with Kafka's default limit of 1 MiB per record batch.
	DefaultBatchBytes  = 900_000
	DefaultClientID    = "outbox"
	DefaultCompression = "snappy"
)

const (
	defaultPort = "9092"
	plainSASL   = "plain"
	// maxRecordBytes is high, so that the topic's own limit decides.
	maxRecordBytes = 64 << 20
	// byCluster leaves a number to the cluster.
	byCluster = -1
)

// Config configures a publisher.
type Config struct {
	// Addresses are brokers of the cluster, as host:port; they name the others. At least one.
	Addresses []string
	// Username and Password are the credentials; without a username there are none.
	Username, Password string
	// SASL is how the credentials are sent: plain, scram-sha-256 or scram-sha-512. Default plain.
	SASL string
	// TLS is set to connect over TLS.
	TLS *tls.Config

	// Create creates missing topics. Without it, events for a missing topic wait.
	Create bool
	// Partitions and Replication are for topics that Create creates; zero for the cluster's defaults.
	Partitions, Replication int
	// BatchBytes is how much is sent at once, before compression. Default DefaultBatchBytes.
	BatchBytes int
	// Compression is snappy, none, gzip, lz4 or zstd. Default snappy.
	Compression string
	// ClientID is the name by which the brokers know this client. Default outbox.
	ClientID string
	// Format is the format of an event's fields.
	Format wire.Format
}

func (c Config) withDefaults() Config {
	if c.Username != "" {
		c.SASL = cmp.Or(c.SASL, plainSASL)
	}
	c.Compression = cmp.Or(c.Compression, DefaultCompression)
	c.ClientID = cmp.Or(c.ClientID, DefaultClientID)
	c.BatchBytes = cmp.Or(c.BatchBytes, DefaultBatchBytes)
	c.Partitions = cmp.Or(c.Partitions, byCluster)
	c.Replication = cmp.Or(c.Replication, byCluster)
	return c
}

func (c Config) validate() error {
	switch {
	case !c.Create && (c.Partitions != byCluster || c.Replication != byCluster):
		return errors.New("partitions and replication go with create=true")
	case c.SASL != "" && (c.Username == "" || c.Password == ""):
		return errors.New("sasl needs a user and a password: kafka://user:password@host:9092, or password-file=FILE")
	case c.BatchBytes < 0 || c.BatchBytes > maxRecordBytes:
		return fmt.Errorf("batch-bytes is %d; it must be above zero and at most %d", c.BatchBytes, maxRecordBytes)
	}
	_, err := c.codec()
	return err
}
