package natsjs

import "github.com/packfinderz/outbox/destinations/wire"

// ParseURL reads a destination such as nats://user:password@host:4222,host2:4222?create=true, or with a
// token alone before the @. tls is NATS over TLS. No error shows a secret.
func ParseURL(raw string) (Config, error) {
	u, err := wire.Form{
		Name: "NATS", Like: "nats://user:password@host:4222?create=true", Ports: map[string]string{"nats": defaultPort, "tls": defaultPort},
	}.Parse(raw)
	if err != nil {
		return Config{}, err
	}
	o := u.Options
	config := Config{
		Addresses: u.Addresses, Username: u.User.Username(), Password: u.Password(), Creds: o.String("creds", ""),
		TLS:           o.TLS(u.Scheme == "tls" || o.Has("ca", "cert", "key")),
		SubjectPrefix: o.String("subject-prefix", ""), Stream: o.String("stream", ""), Create: o.Bool("create"), SyncAlways: o.Bool("sync-always"),
		Window: o.Int("window", DefaultWindow), Format: o.Format(),
	}
	if _, has := u.User.Password(); !has && config.Password == "" {
		config.Username, config.Token = "", config.Username
	}
	_, err = config.ClientOptions() // it looks at the credentials' file
	return config, u.Err(err)
}
