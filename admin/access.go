package admin

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// Access says who may use the console. The zero value is for the person at this machine: requests that come from
// the loopback and are addressed to it have the role Operator; all others are refused.
type Access struct {
	// Credentials are the users and tokens.
	Credentials Credentials
	// Proxy is a trusted reverse proxy, which may authenticate users.
	Proxy Proxy
	// Authenticate identifies the user of a request, for a console mounted in another server; it returns false if
	// there is none. Default: not called.
	Authenticate func(*http.Request) (Identity, bool)
	// MaskPayloads hides payloads and the values of headers from viewers.
	MaskPayloads bool
}

// open reports whether nobody needs to log in, which is so on the loopback only.
func (a *Access) open() bool {
	return a.Credentials.empty() && a.Proxy.UserHeader == "" && a.Authenticate == nil
}

// atHome reports whether a request comes from this machine and is addressed to it. The address matters as much:
// another site can point its own name at the loopback. Requests passed on by a proxy on this machine come from
// elsewhere.
func atHome(r *http.Request) bool {
	for _, passedOn := range []string{"Forwarded", "Via", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-Ip"} {
		if r.Header.Get(passedOn) != "" {
			return false
		}
	}
	from, ok := peer(r)
	return ok && from.IsLoopback() && isLoopback(hostname(r.Host))
}

func hostname(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	return strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
}

// isLoopback reports whether a host can only be this machine.
func isLoopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	address, err := netip.ParseAddr(host)
	return err == nil && address.Unmap().IsLoopback()
}

// caller is the user of a request, and how they were identified.
type caller struct {
	Identity
	// byToken is set for a bearer token, which a browser never sends by itself.
	byToken bool
	// bySession is set for a user who logged in here and may log out.
	bySession bool
}

// identify finds the user of a request; false for nobody. A wrong token means nobody, whatever else the request
// carries.
func (c *Console) identify(r *http.Request) (caller, bool) {
	if header := r.Header.Get("Authorization"); header != "" {
		scheme, secret, _ := strings.Cut(header, " ")
		if strings.EqualFold(scheme, "Bearer") {
			is, ok := c.access.Credentials.bearer(strings.TrimSpace(secret))
			return caller{Identity: is, byToken: ok}, ok
		}
	}
	if c.access.Authenticate != nil {
		if is, ok := c.access.Authenticate(r); ok {
			return caller{Identity: is}, is.Role > Nobody
		}
	}
	if is, ok := c.access.Proxy.identify(r); ok {
		return caller{Identity: is}, true
	}
	if is, ok := c.sessions.find(visitOf(r)); ok {
		return caller{Identity: is, bySession: true}, true
	}
	if c.access.open() {
		return caller{Identity: Identity{Name: "console", Role: Operator}}, true
	}
	return caller{}, false
}
