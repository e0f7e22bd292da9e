package kafka

import (
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"github.com/packfinderz/outbox/destinations/wire"
)

// ClientOptions returns the options of a kgo client that reaches the cluster as the publisher does. It
// rejects a configuration that cannot work.
func (c Config) ClientOptions() ([]kgo.Opt, error) {
	c = c.withDefaults()
	if err := c.validate(); err != nil {
		return nil, err
	}
	addresses, err := wire.Addresses(c.Addresses, defaultPort)
	if err != nil {
		return nil, err
	}
	mechanism, err := c.mechanism()
	if err != nil {
		return nil, err
	}
	options := []kgo.Opt{
		kgo.SeedBrokers(addresses...),
		kgo.ClientID(c.ClientID),
		kgo.RequestTimeoutOverhead(5 * time.Second),
		kgo.DialTimeout(3 * time.Second),
		kgo.RequestRetries(2),
		kgo.MetadataMinAge(250 * time.Millisecond),
		kgo.RetryBackoffFn(backoff),
	}
	if mechanism != nil {
		options = append(options, kgo.SASL(mechanism))
	}
	if c.TLS != nil {
		options = append(options, kgo.DialTLSConfig(c.TLS))
	}
	return options, nil
}

// publisherOptions returns the publisher's options, besides those of any client.
func (c Config) publisherOptions() ([]kgo.Opt, error) {
	options, err := c.ClientOptions()
	if err != nil {
		return nil, err
	}
	compression, err := c.codec()
	if err != nil {
		return nil, err
	}
	return append(options,
		kgo.RequiredAcks(kgo.AllISRAcks()),
		kgo.ProducerBatchCompression(compression),
		// A wave is buffered whole and then sent; see batch.
		kgo.ManualFlushing(),
		kgo.ProducerBatchMaxBytes(maxRecordBytes),
		// A message that was given up belongs to the relay again. Kafka fences off what is still on its way: the
		// client goes on with a new epoch.
		kgo.AllowIdempotentProduceCancellation(),
		kgo.ProduceRequestTimeout(10*time.Second),
		// About five seconds of answers such as "too few replicas": then the relay is told, and
		// tries again by its own rules.
		kgo.RecordRetries(20),
	), nil
}

func (c Config) codec() (kgo.CompressionCodec, error) {
	switch c.Compression {
	case "none":
		return kgo.NoCompression(), nil
	case "gzip":
		return kgo.GzipCompression(), nil
	case "lz4":
		return kgo.Lz4Compression(), nil
	case "zstd":
		return kgo.ZstdCompression(), nil
	case DefaultCompression:
		return kgo.SnappyCompression(), nil
	}
	return kgo.CompressionCodec{}, fmt.Errorf("there is no compression %q", c.Compression)
}

// backoff is the wait before a request is tried again.
func backoff(tries int) time.Duration {
	return min(50*time.Millisecond<<min(tries, 10), time.Second)
}

func (c Config) mechanism() (sasl.Mechanism, error) {
	switch c.SASL {
	case "":
		return nil, nil //nolint:nilnil // none is wanted
	case plainSASL:
		return plain.Auth{User: c.Username, Pass: c.Password}.AsMechanism(), nil
	case "scram-sha-256":
		return scram.Auth{User: c.Username, Pass: c.Password}.AsSha256Mechanism(), nil
	case "scram-sha-512":
		return scram.Auth{User: c.Username, Pass: c.Password}.AsSha512Mechanism(), nil
	}
	return nil, fmt.Errorf("there is no SASL mechanism %q", c.SASL)
}
