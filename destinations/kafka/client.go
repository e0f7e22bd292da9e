package kafka

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

// ClientOptions are for a client of one's own: where the cluster is, what it asks for, and how
// patient to be with it. It refuses a configuration that cannot work.
func (c Config) ClientOptions() ([]kgo.Opt, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	options := []kgo.Opt{
		kgo.SeedBrokers(c.Brokers...),
		kgo.ClientID(c.ClientID),
		kgo.RequestTimeoutOverhead(5 * time.Second),
		kgo.DialTimeout(3 * time.Second),
		kgo.RequestRetries(2),
		kgo.MetadataMinAge(250 * time.Millisecond),
		kgo.RetryBackoffFn(backoff),
	}
	mechanism, err := c.mechanism()
	if err != nil {
		return nil, err
	}
	if mechanism != nil {
		options = append(options, kgo.SASL(mechanism))
	}
	if c.TLS || c.CA != "" || c.Cert != "" {
		config, err := c.tlsConfig()
		if err != nil {
			return nil, fmt.Errorf("set up TLS: %w", err)
		}
		options = append(options, kgo.DialTLSConfig(config))
	}
	return options, nil
}

// publisherOptions are the publisher's own beside them.
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
		// A message that is given up is the relay's again. Kafka fences off what of it is
		// still on its way: the client goes on with a new epoch.
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
	case "", "snappy":
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
	case "plain":
		return plain.Auth{User: c.User, Pass: c.Password}.AsMechanism(), nil
	case "scram-sha-256":
		return scram.Auth{User: c.User, Pass: c.Password}.AsSha256Mechanism(), nil
	case "scram-sha-512":
		return scram.Auth{User: c.User, Pass: c.Password}.AsSha512Mechanism(), nil
	}
	return nil, fmt.Errorf("there is no SASL mechanism %q", c.SASL)
}

func (c Config) tlsConfig() (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if c.CA != "" {
		text, err := os.ReadFile(c.CA)
		if err != nil {
			return nil, err
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("%s holds no certificate", c.CA)
		}
	}
	if c.Cert != "" {
		pair, err := tls.LoadX509KeyPair(c.Cert, c.Key)
		if err != nil {
			return nil, err
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}
