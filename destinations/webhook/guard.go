package webhook

import (
	"fmt"
	"net/netip"
	"slices"
	"syscall"
)

// A URL may come from a customer, and the relay is inside the network. The address is checked when it is dialled: an
// earlier check would miss a name that changes its address.

// privateError is a refused address.
type privateError struct{ address string }

// Error says how to allow it.
func (e *privateError) Error() string {
	return fmt.Sprintf("the address %s is not public; #allow-private=true at the end of the URL allows it", e.address)
}

// refusePrivate is a net.Dialer's Control.
func refusePrivate(_, address string, _ syscall.RawConn) error {
	target, err := netip.ParseAddrPort(address)
	if err != nil || !isPublic(target.Addr()) {
		return &privateError{address}
	}
	return nil
}

// reserved are the networks that are not of the public internet (RFC 6890 and its registries).
var reserved = prefixes(
	"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24",
	"192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/3",
	"2001::/23", "2001:db8::/32", "3fff::/20",
)

var (
	global    = netip.MustParsePrefix("2000::/3")
	nat64     = netip.MustParsePrefix("64:ff9b::/96")
	sixToFour = netip.MustParsePrefix("2002::/16")
)

func prefixes(texts ...string) []netip.Prefix {
	list := make([]netip.Prefix, len(texts))
	for i, text := range texts {
		list[i] = netip.MustParsePrefix(text)
	}
	return list
}

// isPublic reports whether an address belongs to the public internet, even if it only wraps another.
func isPublic(address netip.Addr) bool {
	address = address.WithZone("").Unmap()
	bytes := address.AsSlice()
	switch {
	case !address.IsValid():
		return false
	case nat64.Contains(address):
		return isPublic(netip.AddrFrom4([4]byte(bytes[12:16])))
	case sixToFour.Contains(address):
		return isPublic(netip.AddrFrom4([4]byte(bytes[2:6])))
	case address.Is6() && !global.Contains(address):
		return false
	}
	return !slices.ContainsFunc(reserved, func(network netip.Prefix) bool { return network.Contains(address) })
}
