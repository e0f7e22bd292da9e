package webhook_test

import (
	"bufio"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/destinations/webhook"
)

// speak answers every request with the text, whatever it is, and closes the connection.
func speak(t testing.TB, text func(io.Writer)) (url string) {
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
				defer func() { _ = conn.Close() }()
				request, err := http.ReadRequest(bufio.NewReader(conn))
				if err != nil {
					return
				}
				_, _ = io.Copy(io.Discard, request.Body) // or the end would be a reset
				text(conn)
			}()
		}
	}()
	return "http://" + listener.Addr().String()
}

// TestNoCompleteAnswer has servers that say something which is not an HTTP answer, or only a part of one: a port that is
// another program's, a proxy that is killed while it writes. That says nothing about the event, also where the part is a
// status that would be held against it.
func TestNoCompleteAnswer(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text  func(io.Writer)
		words string
	}{
		"AMQP":                {write("AMQP\x00\x00\t\x01"), "malformed HTTP"},
		"SSH":                 {write("SSH-2.0-OpenSSH_9.2\r\n"), "malformed HTTP"},
		"half a status line":  {write("HTTP/1.1 20"), "malformed HTTP"},
		"no status":           {write("HTTP/1.1 abc OK\r\n\r\n"), "malformed HTTP"},
		"half a header":       {write("HTTP/1.1 500 Oops\r\nContent-Le"), "malformed MIME"},
		"a wrong header":      {write("HTTP/1.1 500 Oops\r\nno colon\r\n\r\n"), "malformed MIME"},
		"a wrong length":      {write("HTTP/1.1 500 Oops\r\nContent-Length: many\r\n\r\n"), "Content-Length"},
		"an endless header":   {endless("HTTP/1.1 500 Oops\r\nX: ", strings.Repeat("x", 1<<16)), "exceeded"},
		"endless 1xx":         {endless("", strings.Repeat("HTTP/1.1 103 Early Hints\r\n\r\n", 1<<10)), "1"},
		"half a body":         {write("HTTP/1.1 500 Oops\r\nContent-Length: 100\r\n\r\nhalf"), "unexpected EOF"},
		"half a chunk":        {write("HTTP/1.1 400 No\r\nTransfer-Encoding: chunked\r\n\r\n64\r\nhalf"), "unexpected EOF"},
		"a chunk that is not": {write("HTTP/1.1 422 No\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n"), "chunk"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			publisher := open(t, webhook.Config{URL: speak(t, c.text), AllowPrivate: true, Terminal: []int{400}})
			wantClass(t, name, one(t, publisher), outbox.ClassUnavailable, c.words)
		})
	}
}

func write(text string) func(io.Writer) {
	return func(w io.Writer) { _, _ = io.WriteString(w, text) }
}

// endless writes the same again and again, until nobody reads it any more.
func endless(first, again string) func(io.Writer) {
	return func(w io.Writer) {
		_, err := io.WriteString(w, first)
		for err == nil {
			_, err = io.WriteString(w, again)
		}
	}
}

// TestHalfAnAcknowledgement breaks off after a status of 2xx: it is the acknowledgement, whatever becomes of the rest.
func TestHalfAnAcknowledgement(t *testing.T) {
	t.Parallel()
	url := speak(t, write("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf"))
	if err := one(t, open(t, webhook.Config{URL: url, AllowPrivate: true})); err != nil {
		t.Error(err)
	}
}

// TestSlowBody has a receiver that begins an answer and does not end it in time.
func TestSlowBody(t *testing.T) {
	t.Parallel()
	over := make(chan struct{})
	t.Cleanup(func() { close(over) })
	url := speak(t, func(w io.Writer) {
		write("HTTP/1.1 500 Oops\r\nContent-Length: 100\r\n\r\nhalf")(w)
		<-over
	})
	publisher := open(t, webhook.Config{URL: url, AllowPrivate: true, Timeout: time.Second})
	wantClass(t, "half an answer", one(t, publisher), outbox.ClassUnclear, "did not answer in time")
}

// TestWrongTLS has a URL with http: that names a port for HTTPS, or a certificate that has expired. Servers answer
// that with 400, to everybody.
func TestWrongTLS(t *testing.T) {
	t.Parallel()
	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	t.Cleanup(secure.Close)
	urls := []string{"http" + strings.TrimPrefix(secure.URL, "https")}
	for _, text := range []string{
		"<center>The plain HTTP request was sent to HTTPS port</center>",
		"Reason: You're speaking plain HTTP to an SSL-enabled server port.",
		"<center><h1>400 Bad Request</h1></center>\n<center>The SSL certificate error</center>",
		"<center><h1>400 Bad Request</h1></center>\n<center>No required SSL certificate was sent</center>",
	} {
		urls = append(urls, newReceiver(t, func(w http.ResponseWriter, _ *http.Request) { http.Error(w, text, http.StatusBadRequest) }).URL)
	}
	for _, url := range urls {
		wantClass(t, url, one(t, open(t, webhook.Config{URL: url, AllowPrivate: true})), outbox.ClassUnclear, "answered 400")
	}
}
