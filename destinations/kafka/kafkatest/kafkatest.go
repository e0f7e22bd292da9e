// Package kafkatest runs a Kafka cluster of its own for a test: franz-go's kfake, which speaks
// Kafka's protocol on real connections and keeps everything in memory. It cannot be killed
// without losing that, so the connections to it are cut instead.
package kafkatest

import (
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/packfinderz/outbox/destinations/kafka"
	"github.com/packfinderz/outbox/outboxtest/publishertest"
	"github.com/packfinderz/outbox/outboxtest/tcpproxy"
)

const (
	brokers = 3
	// Partitions is how many publishertest.Topic has.
	Partitions = 4
)

// Broker is a cluster of three brokers with the topic publishertest.Topic ready.
type Broker struct {
	// Cluster is what is behind the connections, for tests that make it fail.
	Cluster *kfake.Cluster

	addresses []string // of the proxies
	proxies   []*tcpproxy.Proxy
}

// New starts a cluster, and ends it with the test.
func New(t testing.TB, options ...kfake.Opt) *Broker {
	t.Helper()
	b := &Broker{}
	cluster, err := start(append(options, kfake.ListenFn(func(network, address string) (net.Listener, error) {
		listener, err := net.Listen(network, address)
		if err != nil {
			return nil, err
		}
		proxy := tcpproxy.New(t, listener.Addr().String())
		b.proxies = append(b.proxies, proxy)
		b.addresses = append(b.addresses, proxy.Address())
		return advertised{listener, proxy.Address()}, nil
	}))...)
	if err != nil {
		t.Fatal(err)
	}
	b.Cluster = cluster
	t.Cleanup(cluster.Close)
	return b
}

// Open returns a publisher from a URL, and closes it with the test.
func Open(t testing.TB, url string) *kafka.Publisher {
	t.Helper()
	return publishertest.Open(t, url, kafka.ParseURL, kafka.New)
}

// Serve starts a cluster for programs that are no tests: examples, measurements. It runs until
// stop is called.
func Serve() (url string, stop func(), err error) {
	cluster, err := start()
	if err != nil {
		return "", nil, err
	}
	return "kafka://" + strings.Join(cluster.ListenAddrs(), ","), cluster.Close, nil
}

func start(options ...kfake.Opt) (*kfake.Cluster, error) {
	cluster, err := kfake.NewCluster(append([]kfake.Opt{
		kfake.NumBrokers(brokers), kfake.SeedTopics(Partitions, publishertest.Topic),
	}, options...)...)
	if err != nil {
		return nil, fmt.Errorf("start a Kafka cluster: %w", err)
	}
	// The cluster draws the leaders by lot: now and then one broker would lead every partition.
	for partition := range int32(Partitions) {
		if err := cluster.MoveTopicPartition(publishertest.Topic, partition, partition%brokers); err != nil {
			cluster.Close()
			return nil, fmt.Errorf("spread the partitions over the brokers: %w", err)
		}
	}
	return cluster, nil
}

// advertised is a listener that gives the proxy before it as its address, which is what the
// brokers tell their clients.
type advertised struct {
	net.Listener
	address string
}

func (a advertised) Addr() net.Addr { return address(a.address) }

type address string

func (address) Network() string  { return "tcp" }
func (a address) String() string { return string(a) }

// Addresses are where the brokers are reached, host:port,host:port.
func (b *Broker) Addresses() string { return strings.Join(b.addresses, ",") }

// URL returns the destination for outbox relay --to.
func (b *Broker) URL() string { return "kafka://" + b.Addresses() }

// Received is all that has arrived in publishertest.Topic, partition by partition. It needs
// the connections to be there.
func (b *Broker) Received(t testing.TB) []publishertest.Received {
	t.Helper()
	list, err := Read(publishertest.Topic, b.addresses...)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// Stop cuts every connection and refuses new ones.
func (b *Broker) Stop(t testing.TB) {
	t.Helper()
	for _, proxy := range b.proxies {
		proxy.Cut()
	}
}

// Start takes connections again, at the same addresses.
func (b *Broker) Start(t testing.TB) {
	t.Helper()
	for _, proxy := range b.proxies {
		proxy.Restore(t)
	}
}

// Proxies stand before the brokers, for tests that do more with the connections.
func (b *Broker) Proxies() []*tcpproxy.Proxy { return b.proxies }

// Leader stands before the broker that leads a partition of publishertest.Topic. The cluster elects
// no other while it is away.
func (b *Broker) Leader(partition int32) *tcpproxy.Proxy {
	return b.proxies[b.Cluster.LeaderFor(publishertest.Topic, partition)]
}

// Throttle makes the connections as slow as so many bytes per second; 0 lifts it.
func (b *Broker) Throttle(bytesPerSecond int) {
	for _, proxy := range b.proxies {
		proxy.Throttle(bytesPerSecond)
	}
}
