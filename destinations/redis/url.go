package redis

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"

	"github.com/packfinderz/outbox/destinations/wire"
)

const defaultPort = "6379"

// ParseURL reads a destination such as redis://user:password@host:6379/0?create=true. rediss is
// Redis over TLS. Several hosts, separated by commas, are nodes of one cluster.
func ParseURL(raw string) (Config, error) {
	config, err := parseURL(raw)
	if err != nil {
		return Config{}, fmt.Errorf("redis URL: %w", err)
	}
	return config, nil
}

// These do not repeat any of the URL: a password that is not escaped may be anywhere in it.
var (
	errURL      = errors.New("it must look like redis://user:password@host:6379/0?option=value, with special characters written as %XX")
	errHost     = errors.New("a host must look like name or name:port")
	errDatabase = errors.New("what follows the host must be the number of a database")
)

func parseURL(raw string) (Config, error) {
	scheme, rest, _ := strings.Cut(raw, "://")
	if scheme != "redis" && scheme != "rediss" {
		return Config{}, errURL
	}
	// The hosts are taken out first: package url knows no lists of them.
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	at := strings.LastIndex(rest[:end], "@")
	u, err := url.Parse(scheme + "://" + rest[:at+1] + "host" + rest[end:])
	if err != nil || u.Fragment != "" || at < 0 && strings.Contains(rest[end:], "@") {
		return Config{}, errURL
	}
	var config Config
	if config.Addresses, err = addresses(rest[at+1 : end]); err != nil {
		return Config{}, err
	}
	if config.DB, err = database(u.Path); err != nil {
		return Config{}, err
	}
	config.Username = u.User.Username()
	config.Password, _ = u.User.Password()
	return config, config.options(u.RawQuery, scheme == "rediss")
}

func (c *Config) options(query string, secure bool) error {
	o := wire.ParseOptions(query)
	c.Cluster = o.Bool("cluster")
	c.TLS = o.TLS(secure)
	if secret := o.Secret("password-file"); secret != "" {
		c.Password = secret
	}
	c.Prefix = o.String("prefix", "")
	c.Create = o.Bool("create")
	c.MaxLen = o.Int("maxlen", 0)
	c.Wait = o.Int("wait", 0)
	c.WaitTimeout = o.Duration("wait-timeout", DefaultWaitTimeout)
	c.MaxSize = o.Int("max-size", DefaultMaxSize)
	c.Format = o.Format()
	if err := o.Err(); err != nil {
		return err
	}
	return c.check()
}

func addresses(hosts string) ([]string, error) {
	var list []string
	for host := range strings.SplitSeq(hosts, ",") {
		u := url.URL{Host: host}
		name, port := u.Hostname(), u.Port()
		if port == "" {
			port = defaultPort
		}
		_, err := strconv.ParseUint(port, 10, 16)
		if bare := name == host; err != nil || name == "" || bare && strings.Contains(name, ":") || strings.HasSuffix(host, ":") {
			return nil, errHost
		}
		list = append(list, net.JoinHostPort(name, port))
	}
	return list, nil
}

func database(path string) (int, error) {
	path = strings.TrimPrefix(path, "/")
	if path == "" {
		return 0, nil
	}
	db, err := strconv.Atoi(path)
	if err != nil || db < 0 {
		return 0, errDatabase
	}
	return db, nil
}
