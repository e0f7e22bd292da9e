package kafka

import "github.com/packfinderz/outbox/destinations/wire"

// ParseURL reads a destination such as kafka://user:password@host:9092,host2:9092?create=true. No
// error shows a secret.
func ParseURL(raw string) (Config, error) {
	u, err := wire.Form{
		Name: "kafka", Like: "kafka://user:password@host:9092?create=true", Ports: map[string]string{"kafka": defaultPort},
	}.Parse(raw)
	if err != nil {
		return Config{}, err
	}
	o := u.Options
	config := Config{
		Addresses: u.Addresses, Username: u.User.Username(), Password: u.Password(),
		SASL:   o.Choice("sasl", "", plainSASL, "scram-sha-256", "scram-sha-512"),
		TLS:    o.TLS(o.Bool("tls") || o.Has("ca", "cert", "key")),
		Create: o.Bool("create"), Partitions: o.Int("partitions", 0), Replication: o.Int("replication", 0),
		BatchBytes:  o.Int("batch-bytes", DefaultBatchBytes),
		Compression: o.Choice("compression", DefaultCompression, "none", "gzip", "lz4", "zstd"),
		ClientID:    o.String("client-id", DefaultClientID),
		Format:      o.Format(),
	}
	return config, u.Err(config.withDefaults().validate())
}
