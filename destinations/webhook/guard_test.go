package webhook_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/destinations/webhook"
)

// TestPrivate has a receiver on the loopback, by every way of writing it that a resolver takes.
func TestPrivate(t *testing.T) {
	t.Parallel()
	for _, host := range []string{
		"127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "[::1]", "0.0.0.0", "[::]", "169.254.169.254", "10.0.0.1",
		"[64:ff9b::7f00:1]", "[fe80::1]", "[fd00::1]",
	} {
		t.Run(host, func(t *testing.T) {
			t.Parallel()
			r := newReceiver(t, nil)
			publisher := open(t, webhook.Config{URL: "http://" + host + ":" + r.port()})
			for _, err := range []error{one(t, publisher), publisher.Ping(t.Context())} {
				wantClass(t, host, err, outbox.ClassUnavailable, "is not public; #allow-private=true at the end of the URL allows it")
				if !outbox.IsMisconfigured(err) {
					t.Errorf("%s: waiting does not help, but: %v", host, err)
				}
			}
			if n := len(r.deliveries()); n != 0 {
				t.Errorf("%d requests arrived", n)
			}
		})
	}
	allowed := open(t, webhook.Config{URL: "http://localhost:" + newReceiver(t, nil).port(), AllowPrivate: true})
	if err := one(t, allowed); err != nil {
		t.Error(err)
	}
}

// port is where the receiver listens.
func (r *receiver) port() string {
	_, port, _ := strings.Cut(strings.TrimPrefix(r.URL, "http://"), ":")
	return port
}

func TestIsPublic(t *testing.T) {
	t.Parallel()
	for want, addresses := range map[bool][]string{
		true: {"8.8.8.8", "93.184.216.34", "172.15.255.255", "172.32.0.0", "100.63.255.255", "100.128.0.0", "198.17.0.1", "223.255.255.255",
			"2606:4700::1111", "2a00:1450::1", "::ffff:8.8.8.8", "64:ff9b::808:808", "2002:808:808::1"},
		false: {"0.0.0.0", "0.1.2.3", "10.255.255.255", "100.64.0.1", "100.127.255.255", "127.0.0.1", "127.255.255.255", "169.254.169.254",
			"172.16.0.1", "172.31.255.255", "192.0.0.1", "192.0.2.1", "192.168.1.1", "198.18.0.1", "198.51.100.1", "203.0.113.1",
			"224.0.0.1", "239.1.1.1", "240.0.0.1", "255.255.255.255",
			"::", "::1", "::127.0.0.1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::7f00:1", "64:ff9b::a00:1", "64:ff9b:1::808:808",
			"2002:7f00:1::1", "2002:a00:1::1", "2001::1", "2001:db8::1", "fc00::1", "fd12::1", "fe80::1", "fe80::1%eth0", "fec0::1", "ff02::1", "100::1"},
	} {
		for _, address := range addresses {
			if got := webhook.IsPublic(netip.MustParseAddr(address)); got != want {
				t.Errorf("%s is public: %t, want %t", address, got, want)
			}
		}
	}
	if webhook.IsPublic(netip.Addr{}) {
		t.Error("no address at all is public")
	}
}
