package admin_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/packfinderz/outbox/admin"
)

func TestLogin(t *testing.T) {
	t.Parallel()
	b := newBrowser(t, admin.Config{Access: admin.Access{Credentials: newParties(t).Credentials}})
	b.get("/t/shop/audit").want(t, http.StatusOK, "Log in")
	b.get("/api/v1/session").want(t, http.StatusUnauthorized, "log in first")
	b.submit("/login", "/login", url.Values{"name": {"viewer"}, "password": {"wrong password"}}).want(t, http.StatusUnauthorized, "Name or password is wrong.")
	b.submit("/login", "/login", url.Values{"name": {"nobody"}, "password": {password}}).want(t, http.StatusUnauthorized, "Name or password is wrong.")
	before := b.cookie()
	b.logIn("viewer").want(t, http.StatusOK, "Overview")
	if after := b.cookie(); after == before {
		t.Error("the session has the number that the browser brought")
	}
	b.get("/api/v1/session").want(t, http.StatusOK, `"role":"viewer"`)
	b.submit("/t/shop/audit", "/logout", url.Values{}).want(t, http.StatusOK, "Log in")
	b.get("/api/v1/session").want(t, http.StatusUnauthorized, "log in first")
}

func (b *browser) cookie() string {
	at, err := url.Parse(b.base)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, cookie := range b.Jar.Cookies(at) {
		return cookie.Value
	}
	return ""
}

// TestLinksFromElsewhere: who follows a link in a chat, and whose browser therefore keeps the
// cookie to itself, is not logged out by it.
func TestLinksFromElsewhere(t *testing.T) {
	t.Parallel()
	b := newBrowser(t, admin.Config{Prefix: "/outbox", Access: admin.Access{Credentials: newParties(t).Credentials}})
	b.logIn("viewer")
	b.Jar = nil
	got := b.send("GET", "/t/shop/dead?size=7", "", func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") })
	if got.Header.Get("Set-Cookie") != "" || got.Header.Get("Refresh") != "0;url=/outbox/t/shop/dead?size=7" || got.StatusCode != http.StatusOK {
		t.Errorf("%d %v", got.StatusCode, got.Header)
	}
}

// TestLoginGoesNowhereElse: the page after the login is one of ours.
func TestLoginGoesNowhereElse(t *testing.T) {
	t.Parallel()
	b := newBrowser(t, admin.Config{Access: admin.Access{Credentials: newParties(t).Credentials}})
	b.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	for next, want := range map[string]string{
		"/t/shop/audit?size=5": "/t/shop/audit?size=5", "": "/", "//evil.example/": "/", "https://evil.example/": "/",
		"/\\evil.example": "/", "/\t/evil.example": "/",
	} {
		got := b.submit("/login", "/login", url.Values{"name": {"viewer"}, "password": {password}, "next": {next}})
		if to := got.Header.Get("Location"); got.StatusCode != http.StatusSeeOther || to != want {
			t.Errorf("after a login for %q: %d %q, want %q", next, got.StatusCode, to, want)
		}
	}
}

// TestLoginIsSlowedDown: guesses are counted before they are looked at, so that many at once are
// no way around it; by name and by address, which is the one that the proxy saw and not the one that
// the request claims.
func TestLoginIsSlowedDown(t *testing.T) {
	t.Parallel()
	p := newParties(t)
	for by, guessOf := range map[string]func(n int) (name, forwarded string){
		"by name":    func(n int) (string, string) { return "operator", fmt.Sprint("198.51.100.", n) },
		"by address": func(n int) (string, string) { return fmt.Sprint("user", n), "203.0.113.7" },
		"by the address that the proxy saw": func(n int) (string, string) {
			return fmt.Sprint("user", n), fmt.Sprint("198.51.100.", n, ", 203.0.113.7")
		},
	} {
		t.Run(by, func(t *testing.T) {
			t.Parallel()
			b := newBrowser(t, admin.Config{Access: admin.Access{Credentials: p.Credentials, Proxy: admin.Proxy{Addresses: loopback}}})
			token := b.formToken("/login")
			var refused atomic.Int64
			var guessing sync.WaitGroup
			for n := range 40 {
				guessing.Go(func() {
					name, forwarded := guessOf(n)
					got, err := b.guess(url.Values{"name": {name}, "password": {"guess"}, "csrf": {token}}, forwarded)
					if err != nil {
						t.Error(err)
						return
					}
					defer func() { _ = got.Body.Close() }()
					if got.StatusCode == http.StatusTooManyRequests {
						refused.Add(1)
						if got.Header.Get("Retry-After") == "" {
							t.Error("it does not say when to try again")
						}
					} else if got.StatusCode != http.StatusUnauthorized {
						t.Errorf("a guess is answered with %d", got.StatusCode)
					}
				})
			}
			guessing.Wait()
			if refused.Load() < 10 {
				t.Errorf("of forty guesses only %d were refused", refused.Load())
			}
		})
	}
}

// guess tries to log in, from an address in front of the proxy.
func (b *browser) guess(form url.Values, forwarded string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(b.t.Context(), http.MethodPost, b.base+"/login", strings.NewReader(form.Encode()))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("X-Forwarded-For", forwarded)
	return b.Do(r)
}
