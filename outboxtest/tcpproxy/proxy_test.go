package tcpproxy_test

import (
	"bufio"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/packfinderz/outbox/outboxtest/tcpproxy"
)

// echo is a server that says everything back.
func echo(t *testing.T) (address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = io.Copy(conn, conn)
				_ = conn.Close()
			}()
		}
	}()
	return listener.Addr().String()
}

func dial(t *testing.T, address string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func say(t *testing.T, conn net.Conn, words string) {
	t.Helper()
	if _, err := io.WriteString(conn, words); err != nil {
		t.Fatal(err)
	}
}

func hear(t *testing.T, conn net.Conn, words string) {
	t.Helper()
	got := make([]byte, len(words))
	if _, err := io.ReadFull(conn, got); err != nil || string(got) != words {
		t.Fatalf("heard %q, %v; want %q", got, err, words)
	}
}

func TestSwallow(t *testing.T) {
	t.Parallel()
	proxy := tcpproxy.New(t, echo(t))
	old := dial(t, proxy.Address())
	say(t, old, "1")
	hear(t, old, "1")
	proxy.Swallow()
	say(t, old, "2")
	newer := dial(t, proxy.Address())
	say(t, newer, "3")
	for _, conn := range []net.Conn{old, newer} {
		// It can only pass wrongly: what is heard in this time must not be.
		if err := conn.SetReadDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		if n, err := conn.Read(make([]byte, 1)); n > 0 || !os.IsTimeout(err) {
			t.Errorf("read %d bytes, %v through a proxy that swallows everything", n, err)
		}
		if err := conn.SetReadDeadline(time.Time{}); err != nil {
			t.Fatal(err)
		}
	}
	proxy.Resume()
	hear(t, old, "2")
	hear(t, newer, "3")
	proxy.Swallow()
	say(t, old, "4")
	proxy.Cut() // returns although something is held back
}

func TestGarble(t *testing.T) {
	t.Parallel()
	proxy := tcpproxy.New(t, echo(t))
	proxy.Garble(true)
	conn := dial(t, proxy.Address())
	say(t, conn, "hello\n")
	if line, err := bufio.NewReader(conn).ReadString('\n'); err != nil || line == "hello\n" {
		t.Errorf("heard %q, %v; want nonsense", line, err)
	}
	proxy.Garble(false)
	conn = dial(t, proxy.Address())
	say(t, conn, "hello\n")
	hear(t, conn, "hello\n")
}
