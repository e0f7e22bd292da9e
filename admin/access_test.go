package admin_test

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/crypto/bcrypt"

	"github.com/packfinderz/outbox/admin"
)

// parties are two users and two tokens.
type parties struct {
	admin.Credentials
	viewer, operator string // tokens
}

// loopback is where the tests' requests come from.
var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}

const password = "correct horse battery"

func newParties(t *testing.T) parties {
	t.Helper()
	var p parties
	var lines []string
	for _, role := range []admin.Role{admin.Viewer, admin.Operator} {
		// Cheaper than NewUser's: tests are not worth the time that guessing should take.
		hash, err := bcrypt.GenerateFromPassword([]byte(password), bcrypt.MinCost)
		if err != nil {
			t.Fatal(err)
		}
		line := role.String() + ":" + role.String() + ":" + string(hash)
		secret, token, err := admin.NewToken(role.String()+"-program", role)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, line, token)
		if role == admin.Viewer {
			p.viewer = secret
		} else {
			p.operator = secret
		}
	}
	var err error
	if p.Credentials, err = admin.ParseCredentials(strings.NewReader("# people and programs\n\n" + strings.Join(lines, "\n"))); err != nil {
		t.Fatal(err)
	}
	return p
}

// browser is somebody in front of a console: it keeps cookies and follows redirects.
type browser struct {
	t    *testing.T
	base string
	http.Client
}

func newBrowser(t *testing.T, config admin.Config) *browser {
	t.Helper()
	if config.Outboxes == nil {
		config.Outboxes = []admin.Outbox{{Name: "shop", Outbox: newTable(t)}}
	}
	config.Logger = logger(t)
	console, err := admin.New(config)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(console)
	t.Cleanup(func() {
		server.Close()
		console.Close()
	})
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &browser{t: t, base: server.URL + config.Prefix, Client: http.Client{Jar: jar, Transport: server.Client().Transport}}
}

// another is somebody else in front of the same console.
func (b *browser) another() *browser {
	b.t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		b.t.Fatal(err)
	}
	return &browser{t: b.t, base: b.base, Client: http.Client{Jar: jar, Transport: b.Transport}}
}

// answer is what came back.
type answer struct {
	*http.Response
	body string
}

// send sends a request as it is.
func (b *browser) send(method, path, body string, change func(*http.Request)) answer {
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), method, b.base+path, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	if change != nil {
		change(r)
	}
	response, err := b.Do(r)
	if err != nil {
		b.t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return answer{response, string(content)}
}

func (b *browser) get(path string) answer {
	b.t.Helper()
	return b.send("GET", path, "", nil)
}

// post sends a form with what is in it.
func (b *browser) post(path string, form url.Values) answer {
	b.t.Helper()
	return b.send("POST", path, form.Encode(), func(r *http.Request) {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	})
}

var tokenInPage = regexp.MustCompile(`name="csrf" value="([0-9a-f]+)"`)

// submit fills in a form of a page: with the token that is in it.
func (b *browser) submit(page, path string, form url.Values) answer {
	b.t.Helper()
	form.Set("csrf", b.formToken(page))
	return b.post(path, form)
}

// formToken is the token in a page's form.
func (b *browser) formToken(page string) string {
	b.t.Helper()
	found := tokenInPage.FindStringSubmatch(b.get(page).body)
	if found == nil {
		b.t.Fatalf("%s has no form", page)
	}
	return found[1]
}

func (b *browser) logIn(name string) answer {
	b.t.Helper()
	return b.submit("/login", "/login", url.Values{"name": {name}, "password": {password}})
}

func (a answer) want(t *testing.T, status int, words string) {
	t.Helper()
	if a.StatusCode != status || !strings.Contains(a.body, words) {
		t.Errorf("%s %s: %d, want %d with %q:\n%s", a.Request.Method, a.Request.URL.Path, a.StatusCode, status, words, textOf(a.body))
	}
}

// textOf is a page without its frame and its tags, for a message.
func textOf(page string) string {
	if _, main, ok := strings.Cut(page, "<main"); ok {
		page, _, _ = strings.Cut(main, "</main>")
	}
	return strings.Join(strings.Fields(regexp.MustCompile(`<[^>]*>`).ReplaceAllString(page, " ")), " ")
}

func bearer(secret string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+secret) }
}

// TestOpenOnLoopback: without credentials the person at the machine is an operator, and nobody
// who comes under another name.
func TestOpenOnLoopback(t *testing.T) {
	t.Parallel()
	b := newBrowser(t, admin.Config{})
	b.get("/api/v1/session").want(t, http.StatusOK, `"role":"operator"`)
	for _, host := range []string{"evil.example", "evil.example:8080", "127.0.0.1.evil.example", "10.0.0.1", "[2001:db8::1]:80"} {
		b.send("GET", "/api/v1/session", "", func(r *http.Request) { r.Host = host }).want(t, http.StatusForbidden, "answers only on its own machine")
	}
	for _, host := range []string{"localhost", "localhost:99", "127.0.0.1", "[::1]:80", "LOCALHOST"} {
		b.send("GET", "/api/v1/session", "", func(r *http.Request) { r.Host = host }).want(t, http.StatusOK, "operator")
	}
	for _, header := range []string{"X-Forwarded-For", "X-Real-IP", "Via", "Forwarded"} {
		b.send("GET", "/", "", func(r *http.Request) { r.Header.Set(header, "127.0.0.1") }).want(t, http.StatusForbidden, "its own machine")
	}
	// Nor to who comes from elsewhere, whatever name they use.
	console, err := admin.New(admin.Config{Outboxes: []admin.Outbox{{Name: "shop", Outbox: newTable(t)}}, Logger: logger(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer console.Close()
	r := httptest.NewRequestWithContext(t.Context(), "GET", "http://localhost/", http.NoBody)
	r.RemoteAddr = "192.0.2.1:4711"
	w := httptest.NewRecorder()
	console.ServeHTTP(w, r)
	if w.Code != http.StatusForbidden {
		t.Errorf("a request from elsewhere is answered with %d", w.Code)
	}
}

func TestRoles(t *testing.T) {
	t.Parallel()
	p := newParties(t)
	b := newBrowser(t, admin.Config{Access: admin.Access{Credentials: p.Credentials}})
	b.logIn("viewer")
	b.get("/t/shop/retry?all=1").want(t, http.StatusForbidden, "needs an operator")
	for _, action := range []string{"retry", "replay", "hold", "release", "jobs/x/stop"} {
		b.submit("/t/shop/audit", "/t/shop/"+action, url.Values{"all": {"1"}}).want(t, http.StatusForbidden, "needs an operator")
	}
	for _, action := range []string{"retry", "replay", "hold", "release"} {
		b.send("POST", "/api/v1/targets/shop/"+action, `{"all":true}`, bearer(p.viewer)).want(t, http.StatusForbidden, "needs an operator")
	}
	b.send("DELETE", "/api/v1/targets/shop/jobs/x", "", bearer(p.viewer)).want(t, http.StatusForbidden, "needs an operator")
	b.send("POST", "/api/v1/targets/shop/retry", `{"all":true}`, func(r *http.Request) {
		bearer(p.operator)(r)
		r.Header.Set("Content-Type", "application/json")
	}).want(t, http.StatusOK, `"events":0`)
}

// TestTokens: a program says who it is with each request; a wrong token is not helped by a cookie.
func TestTokens(t *testing.T) {
	t.Parallel()
	p := newParties(t)
	b := newBrowser(t, admin.Config{Access: admin.Access{Credentials: p.Credentials}})
	b.logIn("operator")
	b.send("GET", "/api/v1/session", "", bearer(p.viewer)).want(t, http.StatusOK, `"name":"viewer-program"`)
	for _, wrong := range []string{"", "x", p.viewer + "x", p.viewer[:len(p.viewer)-1]} {
		got := b.send("GET", "/api/v1/session", "", bearer(wrong))
		got.want(t, http.StatusUnauthorized, "log in first")
		if got.Header.Get("WWW-Authenticate") == "" {
			t.Error("the refusal does not say how to come in")
		}
	}
}

// TestForgedRequests: what changes something carries a token that only our pages have.
func TestForgedRequests(t *testing.T) {
	t.Parallel()
	b := newBrowser(t, admin.Config{})
	b.get("/t/shop/audit")
	forms := []string{"/login", "/logout", "/t/shop/retry", "/t/shop/replay", "/t/shop/hold", "/t/shop/release", "/t/shop/jobs/x/stop"}
	for _, path := range forms {
		b.post(path, url.Values{"all": {"1"}}).want(t, http.StatusForbidden, "no valid token")
		b.post(path, url.Values{"all": {"1"}, "csrf": {strings.Repeat("0", 64)}}).want(t, http.StatusForbidden, "no valid token")
	}
	// Nor does the API change anything without it, by whatever method.
	change := func(method, token, from, value string) answer {
		path, body := "/api/v1/targets/shop/retry", `{"all":true}`
		if method == http.MethodDelete {
			path, body = "/api/v1/targets/shop/jobs/x", ""
		}
		return b.send(method, path, body, func(r *http.Request) {
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("X-CSRF-Token", token)
			r.Header.Set(from, value)
		})
	}
	another := b.another().token()
	for _, method := range []string{http.MethodPost, http.MethodDelete} {
		change(method, "", "Sec-Fetch-Site", "same-origin").want(t, http.StatusForbidden, "no valid token")
		change(method, another, "Sec-Fetch-Site", "same-origin").want(t, http.StatusForbidden, "no valid token")
		// A page of somebody else's is refused even if it knew the token.
		change(method, b.token(), "Sec-Fetch-Site", "cross-site").want(t, http.StatusForbidden, "another site")
		change(method, b.token(), "Origin", "https://evil.example").want(t, http.StatusForbidden, "another site")
	}
	change(http.MethodPost, b.token(), "Sec-Fetch-Site", "same-origin").want(t, http.StatusOK, `"events":0`)
	change(http.MethodDelete, b.token(), "Sec-Fetch-Site", "same-origin").want(t, http.StatusNotFound, "forgotten")
}

// token is what the browser's scripts would send.
func (b *browser) token() string {
	b.t.Helper()
	found := regexp.MustCompile(`"csrfToken":"([0-9a-f]+)"`).FindStringSubmatch(b.get("/api/v1/session").body)
	if found == nil {
		b.t.Fatal("the session has no token")
	}
	return found[1]
}

// TestProxy: names in headers are believed from the proxy's addresses only.
func TestProxy(t *testing.T) {
	t.Parallel()
	as := func(headers ...string) func(*http.Request) {
		return func(r *http.Request) {
			for i := 0; i < len(headers); i += 2 {
				r.Header.Add(headers[i], headers[i+1])
			}
		}
	}
	b := newBrowser(t, admin.Config{Access: admin.Access{Proxy: admin.Proxy{Addresses: loopback, UserHeader: "X-User", RoleHeader: "X-Role"}}})
	b.get("/api/v1/session").want(t, http.StatusUnauthorized, "")
	b.send("GET", "/api/v1/session", "", as("X-User", "ann")).want(t, http.StatusOK, `"name":"ann","role":"viewer"`)
	b.send("GET", "/api/v1/session", "", as("X-User", "ann", "X-Role", "operator")).want(t, http.StatusOK, `"role":"operator"`)
	b.send("GET", "/api/v1/session", "", as("X-User", "ann", "X-Role", "emperor")).want(t, http.StatusUnauthorized, "")
	b.send("GET", "/api/v1/session", "", as("X-User", "ann", "X-User", "root")).want(t, http.StatusUnauthorized, "")
	elsewhere := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	far := newBrowser(t, admin.Config{Access: admin.Access{Proxy: admin.Proxy{Addresses: elsewhere, UserHeader: "X-User"}}})
	far.send("GET", "/api/v1/session", "", as("X-User", "ann")).want(t, http.StatusUnauthorized, "")
	if _, err := admin.New(admin.Config{
		Outboxes: []admin.Outbox{{Name: "shop", Outbox: newTable(t)}}, Access: admin.Access{Proxy: admin.Proxy{UserHeader: "X-User"}},
	}); err == nil || !strings.Contains(err.Error(), "trusted from no address") {
		t.Errorf("a proxy without addresses: %v", err)
	}
}

// TestEmbedded: the server that the console is mounted in says who it is.
func TestEmbedded(t *testing.T) {
	t.Parallel()
	b := newBrowser(t, admin.Config{Prefix: "/ops/outbox", Access: admin.Access{
		Authenticate: func(r *http.Request) (admin.Identity, bool) {
			name := r.Header.Get("X-App-User")
			return admin.Identity{Name: name, Role: admin.Viewer}, name != ""
		},
	}})
	b.get("/").want(t, http.StatusUnauthorized, "You have to log in first.")
	as := func(r *http.Request) { r.Header.Set("X-App-User", "ann") }
	page := b.send("GET", "/t/shop/audit", "", as)
	page.want(t, http.StatusOK, `href="/ops/outbox/t/shop/events"`)
	for _, link := range regexp.MustCompile(`(?:href|src|action)="([^"]*)"`).FindAllStringSubmatch(page.body, -1) {
		if !strings.HasPrefix(link[1], "/ops/outbox/") && !strings.HasPrefix(link[1], "#") {
			t.Errorf("the page links to %q, outside of its prefix", link[1])
		}
	}
	b.send("GET", "/assets/console.css", "", as).want(t, http.StatusOK, "color-scheme")
}

func TestHeaders(t *testing.T) {
	t.Parallel()
	b := newBrowser(t, admin.Config{})
	for _, path := range []string{"/t/shop/audit", "/login", "/assets/console.js", "/api/v1/session", "/nowhere", "/api/nowhere"} {
		h := b.get(path).Header
		for name, words := range map[string]string{
			"Content-Security-Policy": "frame-ancestors 'none'", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
			"X-Frame-Options": "DENY", "Cache-Control": "",
		} {
			if got := h.Get(name); got == "" || !strings.Contains(got, words) {
				t.Errorf("%s: %s is %q", path, name, got)
			}
		}
		if policy := h.Get("Content-Security-Policy"); strings.Contains(policy, "unsafe") || !strings.Contains(policy, "default-src 'none'") {
			t.Errorf("%s: the policy is %q", path, policy)
		}
	}
	jar := b.Jar
	b.Jar = nil
	cookie := b.get("/t/shop/audit").Header.Get("Set-Cookie")
	b.Jar = jar
	for _, words := range []string{"HttpOnly", "SameSite=Strict", "Path=/"} {
		if !strings.Contains(cookie, words) {
			t.Errorf("the cookie %q lacks %s", cookie, words)
		}
	}
	if strings.Contains(cookie, "Secure") {
		t.Errorf("the cookie %q would not be sent without TLS", cookie)
	}
}

// TestSecureCookie: behind a proxy that speaks TLS, the cookie is only for TLS.
func TestSecureCookie(t *testing.T) {
	t.Parallel()
	b := newBrowser(t, admin.Config{Access: admin.Access{Credentials: newParties(t).Credentials, Proxy: admin.Proxy{Addresses: loopback}}})
	b.Jar = nil
	got := b.send("GET", "/login", "", func(r *http.Request) { r.Header.Set("X-Forwarded-Proto", "https") })
	if !strings.Contains(got.Header.Get("Set-Cookie"), "Secure") {
		t.Errorf("the cookie is %q", got.Header.Get("Set-Cookie"))
	}
}

func TestLargeRequests(t *testing.T) {
	t.Parallel()
	p := newParties(t)
	b := newBrowser(t, admin.Config{Access: admin.Access{Credentials: p.Credentials}})
	b.send("POST", "/api/v1/targets/shop/retry", `{"key":"`+strings.Repeat("x", 2<<20)+`"}`, func(r *http.Request) {
		bearer(p.operator)(r)
		r.Header.Set("Content-Type", "application/json")
	}).want(t, http.StatusRequestEntityTooLarge, "larger than")
	b.post("/login", url.Values{"name": {strings.Repeat("x", 1<<20)}}).want(t, http.StatusRequestEntityTooLarge, "larger than")
}
