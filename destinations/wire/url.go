package wire

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
)

// Form is the form of a broker's URLs: scheme://username:password@host:port,host:port/path?options.
type Form struct {
	// Name begins every error, and Like is an example URL.
	Name, Like string
	// Ports has the default port of each accepted scheme.
	Ports map[string]string
	// Path says what may follow the hosts; empty for nothing.
	Path string
}

// URL is a parsed URL of a broker.
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

	form Form
}

// Parse parses a URL. No error quotes it: an unescaped password may be anywhere in it.
func (f Form) Parse(raw string) (URL, error) {
	u := URL{form: f}
	scheme, rest, _ := strings.Cut(raw, "://")
	port, known := f.Ports[scheme]
	// Take the hosts out first: package url supports no lists of them.
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	at := strings.LastIndex(rest[:end], "@")
	parsed, err := url.Parse(scheme + "://" + rest[:at+1] + "host" + rest[end:])
	if !known || err != nil || parsed.Fragment != "" || at < 0 && strings.Contains(rest[end:], "@") {
		return u, u.wrap(fmt.Errorf("it must look like %s, with special characters written as %%XX", f.Like))
	}
	u.Scheme, u.User, u.Path, u.Options = scheme, parsed.User, strings.TrimPrefix(parsed.EscapedPath(), "/"), ParseOptions(parsed.RawQuery)
	if f.Path == "" && u.Path != "" {
		return u, u.BadPath()
	}
	u.Addresses, err = Addresses(strings.Split(rest[at+1:end], ","), port)
	return u, u.wrap(err)
}

// BadPath returns the error for a path that does not fit Form.Path.
func (u URL) BadPath() error {
	return u.wrap(fmt.Errorf("only %s may follow the hosts: %s", cmp.Or(u.form.Path, "options"), u.form.Like))
}

// Err returns the error of the options, or else that of the resulting configuration.
func (u URL) Err(config error) error { return u.wrap(cmp.Or(u.Options.Err(), config)) }

func (u URL) wrap(err error) error {
	if err != nil {
		return fmt.Errorf("%s URL: %w", u.form.Name, err)
	}
	return nil
}

// Password returns the password in the URL, or the content of the file that the option password-file names.
func (u URL) Password() string {
	if secret := u.Options.Secret("password-file"); secret != "" {
		return secret
	}
	password, _ := u.User.Password()
	return password
}

var errHost = errors.New("a host must look like name or name:port")

// Addresses gives each host a port: its own, or the default. It rejects what is not a host.
func Addresses(hosts []string, port string) ([]string, error) {
	if len(hosts) == 0 {
		return nil, errors.New("no address is named")
	}
	list := make([]string, len(hosts))
	for i, host := range hosts {
		u := url.URL{Host: host}
		name, own := u.Hostname(), u.Port()
		own = cmp.Or(own, port)
		_, err := strconv.ParseUint(own, 10, 16)
		if bare := name == host; err != nil || name == "" || bare && strings.Contains(name, ":") || strings.HasSuffix(host, ":") ||
			strings.ContainsAny(name, " \t\r\n@?/") {
			return nil, errHost
		}
		list[i] = net.JoinHostPort(name, own)
	}
	return list, nil
}
