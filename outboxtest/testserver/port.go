package testserver

import (
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
)

// The ports that FreePort chooses from are those below the ones that systems lend to outgoing
// connections: a server that is stopped finds its port free when it comes back.
const (
	firstPort = 10_240
	lastPort  = 32_000
)

// reserved are the UDP ports with the numbers of those given out, which stay bound until the
// process ends. A TCP port is free before its server starts and while it is stopped: without
// them, another test, or a test of another process, could be given it meanwhile.
var reserved struct {
	sync.Mutex
	ports []net.PacketConn
}

// FreePort is a port of the loopback that nobody listens on, and that no other call is given
// while this process lives.
func FreePort() (int, error) {
	for range 100 {
		port := firstPort + rand.IntN(lastPort-firstPort) //nolint:gosec // it is no secret
		if reserve(Loopback(port)) {
			return port, nil
		}
	}
	return 0, errors.New("found no free port on 127.0.0.1")
}

// Loopback is the address of a port of the loopback.
func Loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

func reserve(address string) bool {
	mark, err := net.ListenPacket("udp", address)
	if err != nil {
		return false
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		_ = mark.Close() // nothing was sent
		return false
	}
	reserved.Lock()
	defer reserved.Unlock()
	reserved.ports = append(reserved.ports, mark)
	return listener.Close() == nil
}
