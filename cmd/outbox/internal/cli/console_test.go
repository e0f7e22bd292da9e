package cli_test

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/packfinderz/outbox/cmd/outbox/internal/cli"
)

// listening is a command that serves a console, while it runs.
type listening struct {
	t    *testing.T
	url  string
	done chan int
	stop context.CancelFunc
}

// listen runs a command until it has said where its console is.
func listen(t *testing.T, args ...string) *listening {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	l := &listening{t: t, done: make(chan int, 1), stop: stop}
	t.Cleanup(stop)
	words, writer := io.Pipe()
	go func() {
		l.done <- cli.Run(ctx, args, cli.Streams{In: strings.NewReader(""), Out: writer, Err: writer})
		_ = writer.Close()
	}()
	var said strings.Builder
	lines := bufio.NewScanner(words)
	for l.url == "" && lines.Scan() {
		said.WriteString(lines.Text() + "\n")
		l.url = regexp.MustCompile(`https?://[0-9.:]+/[a-z/]*`).FindString(lines.Text())
	}
	if l.url == "" {
		t.Fatalf("outbox %s serves no console: %s", strings.Join(args, " "), said.String())
	}
	if strings.Contains(said.String(), "postgres://") {
		t.Errorf("it says where the database is: %s", said.String())
	}
	go func() { _, _ = io.Copy(io.Discard, words) }()
	return l
}

// get fetches a page.
func (l *listening) get(path, token string) (int, string) {
	l.t.Helper()
	return fetch(l.t, strings.TrimSuffix(l.url, "/")+path, token)
}

// fetch asks a server, with a token where there is one, and follows no redirect.
func fetch(t *testing.T, url, token string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	transport := &http.Transport{DisableKeepAlives: true}
	response, err := transport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

// end stops the command as Ctrl-C would.
func (l *listening) end() {
	l.t.Helper()
	l.stop()
	if code := <-l.done; code != 0 {
		l.t.Errorf("it ends with %d", code)
	}
}

// TestConsole serves a console of a stream with two subscriptions, of a queue table, and of a relay.
func TestConsole(t *testing.T) {
	t.Parallel()
	s := newStandard(t)
	s.run("", "subscriptions create", "billing")
	source, _ := modkit(t)
	for name, args := range map[string][]string{
		"/t/default/":              {"console", "--from", s.url},
		"/t/billing/":              {"console", "--from", s.url, "--subscription", "billing"},
		"/t/modkit_outbox_events/": slices.Concat([]string{"console", "--to", "discard:"}, source),
	} {
		l := listen(t, slices.Concat(args, []string{"--listen", "127.0.0.1:0"})...)
		if code, body := l.get(name, ""); code != http.StatusOK || !strings.Contains(body, "Everything is delivered.") {
			t.Errorf("%s answers %d: %s", name, code, body)
		}
		if code, _ := l.get(name+"doctor", ""); code != http.StatusOK {
			t.Errorf("the doctor of %s answers %d", name, code)
		}
		l.end()
	}
	l := listen(t, "relay", "--from", s.url, "--to", "discard:", "--console", "127.0.0.1:0", "--console-prefix", "/outbox")
	if code, body := l.get("/t/billing/events", ""); code != http.StatusOK || !strings.Contains(body, `href="/outbox/t/billing/"`) {
		t.Errorf("the relay's console answers %d: %s", code, body)
	}
	l.end()
}

// TestConsoleRefuses: what would be open to everybody does not start.
func TestConsoleRefuses(t *testing.T) {
	t.Parallel()
	s := newStandard(t)
	for _, address := range []string{":0", "0.0.0.0:0", "[::]:0"} {
		s.refuses("give it credentials, or listen on 127.0.0.1", "console", "--listen", address)
		s.refuses("give it credentials, or listen on 127.0.0.1", "relay", "--to", "discard:", "--console", address)
	}
	s.refuses("no such file", "console", "--credentials", "nowhere.users")
	s.refuses("trusted from no address", "console", "--user-header", "X-User")
	s.refuses("neither an address nor a network", "console", "--trust-proxy", "nowhere")
	s.refuses("certificate", "console", "--tls-cert", "nowhere.pem")
	s.refuses("there is no such subscription", "console", "--subscription", "nowhere")
	s.refuses("such as 127.0.0.1:8090", "console", "--listen", "nowhere")
	s.refuses("there is no destination", "console", "--to", "nowhere:")
	refused(t, "make the table with outbox migrate up", "", "console", "--from", s.url, "--layout", "modkit")
}

// TestConsoleCredentials: the lines that the commands make let in who has the password or the token.
func TestConsoleCredentials(t *testing.T) {
	t.Parallel()
	s := newStandard(t)
	user := ok(t, "correct horse\n", "console", "user", "ann", "--role", "operator")
	if !strings.HasPrefix(user, "ann:operator:$2a$") || strings.Contains(user, "horse") {
		t.Errorf("the user is %q", user)
	}
	token := run(t, "", "console", "token", "ci")
	secret := strings.TrimSpace(strings.TrimPrefix(token.err, "the token is "))
	if token.code != 0 || !strings.HasPrefix(token.out, "ci:viewer:sha256:") || strings.Contains(token.out, secret) {
		t.Errorf("the token is %+v", token)
	}
	refused(t, "no role", "secret word", "console", "user", "ann", "--role", "emperor")
	refused(t, "no role", "", "console", "token", "ann", "--role", "emperor")
	refused(t, "too short", "", "console", "user", "ann")
	refused(t, "has a colon", "secret word", "console", "user", "a:b")
	file := filepath.Join(t.TempDir(), "console.users")
	if err := os.WriteFile(file, []byte(user+token.out), 0o600); err != nil {
		t.Fatal(err)
	}
	l := listen(t, "console", "--from", s.url, "--listen", "127.0.0.1:0", "--credentials", file)
	defer l.end()
	if code, body := l.get("/api/v1/session", secret); code != http.StatusOK || !strings.Contains(body, `"name":"ci","role":"viewer"`) {
		t.Errorf("the token opens %d %s", code, body)
	}
	if code, _ := l.get("/api/v1/session", "wrong"); code != http.StatusUnauthorized {
		t.Errorf("a wrong token is answered with %d", code)
	}
	if code, _ := l.get("/login", ""); code != http.StatusOK {
		t.Errorf("the login is answered with %d", code)
	}
}
