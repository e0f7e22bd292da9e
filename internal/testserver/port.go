package testserver

import (
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
)

// The ports that FreePort chooses from are those below the ones that systems lend to outgoing
// connections: a server that is stopped finds its port free when it comes back.
const (
	firstPort = 10_240
	lastPort  = 32_000
)

// FreePort is a port of the loopback that nobody listens on.
func FreePort() (int, error) {
	for range 100 {
		port := firstPort + rand.IntN(lastPort-firstPort) //nolint:gosec // it is no secret
		listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err == nil {
			return port, listener.Close()
		}
	}
	return 0, errors.New("found no free port on 127.0.0.1")
}
