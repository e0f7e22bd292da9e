package pgserver

import (
	"net/url"
	"strconv"
	"strings"
)

// HostsURL returns one address of a database on several servers: whoever connects gets the one that takes writes.
func HostsURL(database string, servers ...*Server) string {
	var hosts, ports []string
	for _, s := range servers {
		hosts, ports = append(hosts, s.state.SocketDir), append(ports, strconv.Itoa(s.state.Port))
	}
	query := url.Values{
		"host": {strings.Join(hosts, ",")}, "port": {strings.Join(ports, ",")},
		"sslmode": {"disable"}, "target_session_attrs": {"read-write"}, "connect_timeout": {"5"},
	}
	u := url.URL{Scheme: "postgres", User: url.User(superuser), Path: "/" + database, RawQuery: query.Encode()}
	return u.String()
}
