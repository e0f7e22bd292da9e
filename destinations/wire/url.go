package wire

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
)

// URL is the URL of a broker: scheme://username:password@host:port,host:port/path?options.
type URL struct {
	Scheme string
	// User is the user information, decoded; nil if there is none.
	User *url.Userinfo
	// Addresses are the hosts, each with a port.
	Addresses []string
	// Path follows the hosts, escaped and without its first slash.
	Path string
	// Options follow the question mark.
	Options *Options
}

// ParseURL reads the URL of a broker. Ports has the default port of each scheme that is taken, and like is
// a URL to show to people. No error quotes the URL: a password that is not escaped may be anywhere in it.
func ParseURL(raw, like string, ports map[string]string) (URL, error) {
	scheme, rest, _ := strings.Cut(raw, "://")
	port, known := ports[scheme]
	// The hosts are taken out first: package url knows no lists of them.
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	at := strings.LastIndex(rest[:end], "@")
	parsed, err := url.Parse(scheme + "://" + rest[:at+1] + "host" + rest[end:])
	if !known || err != nil || parsed.Fragment != "" || at < 0 && strings.Contains(rest[end:], "@") {
		return URL{}, fmt.Errorf("it must look like %s, with special characters written as %%XX", like)
	}
	addresses, err := Addresses(strings.Split(rest[at+1:end], ","), port)
	if err != nil {
		return URL{}, err
	}
	return URL{
		Scheme: scheme, User: parsed.User, Addresses: addresses, Path: strings.TrimPrefix(parsed.EscapedPath(), "/"),
		Options: ParseOptions(parsed.RawQuery),
	}, nil
}

// Password is the password in the URL, or the content of the file that the option password-file names.
func (u URL) Password() string {
	if secret := u.Options.Secret("password-file"); secret != "" {
		return secret
	}
	password, _ := u.User.Password()
	return password
}

var errHost = errors.New("a host must look like name or name:port")

// Addresses gives each host a port: its own, or the default. It refuses what is no host.
func Addresses(hosts []string, port string) ([]string, error) {
	if len(hosts) == 0 {
		return nil, errors.New("no address is named")
	}
	list := make([]string, len(hosts))
	for i, host := range hosts {
		u := url.URL{Host: host}
		name, own := u.Hostname(), u.Port()
		if own == "" {
			own = port
		}
		_, err := strconv.ParseUint(own, 10, 16)
		if bare := name == host; err != nil || name == "" || bare && strings.Contains(name, ":") || strings.HasSuffix(host, ":") ||
			strings.ContainsAny(name, " \t\r\n@?/") {
			return nil, errHost
		}
		list[i] = net.JoinHostPort(name, own)
	}
	return list, nil
}
