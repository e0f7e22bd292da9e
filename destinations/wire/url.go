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

// Form is how the URLs of a broker look: scheme://username:password@host:port,host:port/path?options.
type Form struct {
	// Name begins every error, and Like is a URL to show to people.
	Name, Like string
	// Ports has the default port of each scheme that is taken.
	Ports map[string]string
	// Path says what may follow the hosts; nothing when it is empty.
	Path string
}

// URL is the URL of a broker, taken apart.
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

// Parse reads a URL. No error quotes it: a password that is not escaped may be anywhere in it.
func (f Form) Parse(raw string) (URL, error) {
	u := URL{form: f}
	scheme, rest, _ := strings.Cut(raw, "://")
	port, known := f.Ports[scheme]
	// The hosts are taken out first: package url knows no lists of them.
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

// BadPath is the error of a path that is not what Form.Path says.
func (u URL) BadPath() error {
	return u.wrap(fmt.Errorf("only %s may follow the hosts: %s", cmp.Or(u.form.Path, "options"), u.form.Like))
}

// Err is what is wrong with the options, or else with the configuration that was made of them.
func (u URL) Err(config error) error { return u.wrap(cmp.Or(u.Options.Err(), config)) }

func (u URL) wrap(err error) error {
	if err != nil {
		return fmt.Errorf("%s URL: %w", u.form.Name, err)
	}
	return nil
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
