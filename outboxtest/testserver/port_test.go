package testserver

import (
	"net"
	"strconv"
	"testing"
	"time"
)

// TestReserve asks for a port again while its server has not started, or is stopped.
func TestReserve(t *testing.T) {
	t.Parallel()
	port, err := FreePort()
	if err != nil {
		t.Fatal(err)
	}
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	if reserve(address) {
		t.Errorf("the port %d was given out twice", port)
	}
	server, err := net.Listen("tcp", address)
	// A process that another test has just forked has the listener of FreePort until it execs.
	for deadline := time.Now().Add(10 * time.Second); err != nil && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
		server, err = net.Listen("tcp", address)
	}
	if err != nil {
		t.Fatalf("the port is not free for its server: %v", err)
	}
	if err := server.Close(); err != nil {
		t.Fatal(err)
	}
	if reserve(address) {
		t.Errorf("the port %d of a stopped server was given out again", port)
	}
}
