package admin

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// Proxy is a trusted reverse proxy.
type Proxy struct {
	// Addresses are the proxy's addresses. Its headers, with X-Forwarded-For and X-Forwarded-Proto, are trusted in
	// requests from these only.
	Addresses []netip.Prefix
	// UserHeader is the header with the name of the authenticated user; empty if the proxy authenticates nobody.
	UserHeader string
	// RoleHeader is the header with the user's role, viewer or operator; empty for none.
	RoleHeader string
	// Role is the role of users that RoleHeader gives none. Default Viewer.
	Role Role
}

// ParseProxyAddresses reads addresses and networks, such as 10.0.0.7 and 10.1.0.0/16.
func ParseProxyAddresses(list []string) ([]netip.Prefix, error) {
	prefixes := make([]netip.Prefix, 0, len(list))
	for _, text := range list {
		text = strings.TrimSpace(text)
		if one, err := netip.ParseAddr(text); err == nil {
			prefixes = append(prefixes, netip.PrefixFrom(one, one.BitLen()))
			continue
		}
		network, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("%q is neither an address nor a network such as 10.1.0.0/16", text)
		}
		prefixes = append(prefixes, network.Masked())
	}
	return prefixes, nil
}

// validate rejects a proxy that anybody could pretend to be.
func (p *Proxy) validate() error {
	if (p.UserHeader != "" || p.RoleHeader != "") && len(p.Addresses) == 0 {
		return fmt.Errorf("the header %s is trusted from no address; say where the proxy is, or anybody could send it", p.UserHeader)
	}
	if p.RoleHeader != "" && p.UserHeader == "" {
		return fmt.Errorf("the header %s gives roles, but no header gives names", p.RoleHeader)
	}
	return nil
}

// sent reports whether a request came through the proxy.
func (p *Proxy) sent(r *http.Request) bool {
	from, ok := peer(r)
	return ok && p.covers(from)
}

func (p *Proxy) covers(address netip.Addr) bool {
	return slices.ContainsFunc(p.Addresses, func(prefix netip.Prefix) bool { return prefix.Contains(address) })
}

// identify finds the user that the proxy has authenticated.
func (p *Proxy) identify(r *http.Request) (Identity, bool) {
	name := r.Header.Get(p.UserHeader)
	if p.UserHeader == "" || name == "" || len(r.Header.Values(p.UserHeader)) > 1 || !p.sent(r) {
		return Identity{}, false
	}
	role := max(p.Role, Viewer)
	if p.RoleHeader != "" {
		if given := r.Header.Get(p.RoleHeader); given != "" {
			var err error
			if role, err = ParseRole(given); err != nil {
				return Identity{}, false
			}
		}
	}
	return Identity{Name: name, Role: role}, true
}

// secure reports whether the browser uses TLS, with us or with the proxy.
func (p *Proxy) secure(r *http.Request) bool {
	return r.TLS != nil || p.sent(r) && r.Header.Get("X-Forwarded-Proto") == "https"
}

// client returns the address of a request's client, behind the proxy: the last address that is not a proxy's own.
// The addresses before it are only the client's claim.
func (p *Proxy) client(r *http.Request) string {
	from, _ := peer(r)
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for i := len(hops) - 1; i >= 0 && p.covers(from); i-- {
		hop, err := netip.ParseAddr(strings.TrimSpace(hops[i]))
		if err != nil {
			break
		}
		from = hop.Unmap()
	}
	return from.String()
}

// peer returns the other end of the connection.
func peer(r *http.Request) (netip.Addr, bool) {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}, false
	}
	address, err := netip.ParseAddr(host)
	return address.Unmap(), err == nil
}
