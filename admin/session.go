package admin

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"sync"
	"time"
)

const (
	// cookieName is the only cookie: a random number that means nothing outside this process.
	cookieName = "outbox_console"
	// sessionLife is how long a login lasts.
	sessionLife = 12 * time.Hour
	// maxSessions bounds the memory of logins; the oldest goes first.
	maxSessions = 10_000
	// visitLength is the length of the random text in the cookie.
	visitLength = 26
)

// sessions are the logins, by the number in their cookie.
type sessions struct {
	mu   sync.Mutex
	open map[string]session
	now  func() time.Time
}

type session struct {
	Identity
	since time.Time
}

// begin starts a session and returns its number. Every login has a new number, so that one planted in a browser
// before is useless.
func (s *sessions) begin(is Identity) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	var oldest string
	for visit, open := range s.open {
		if now.Sub(open.since) > sessionLife {
			delete(s.open, visit)
		} else if oldest == "" || open.since.Before(s.open[oldest].since) {
			oldest = visit
		}
	}
	if len(s.open) >= maxSessions {
		delete(s.open, oldest)
	}
	visit := rand.Text()
	s.open[visit] = session{is, now}
	return visit
}

func (s *sessions) find(visit string) (Identity, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	open, ok := s.open[visit]
	if !ok || s.now().Sub(open.since) > sessionLife {
		return Identity{}, false
	}
	return open.Identity, true
}

func (s *sessions) end(visit string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, visit)
}

// visitOf returns the number in a request's cookie; empty without one.
func visitOf(r *http.Request) string {
	cookie, err := r.Cookie(cookieName)
	if err != nil || len(cookie.Value) != visitLength {
		return ""
	}
	return cookie.Value
}

// setVisit sends a number to the browser, which keeps it until it is closed.
func (c *Console) setVisit(w http.ResponseWriter, r *http.Request, visit string) {
	http.SetCookie(w, &http.Cookie{ //nolint:gosec // it is Secure wherever the browser speaks TLS, or it would not be sent
		Name: cookieName, Value: visit, Path: c.prefix + "/",
		HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: c.access.Proxy.secure(r),
	})
}

// visit returns the browser's number, and gives it one if it has none.
func (c *Console) visit(w http.ResponseWriter, r *http.Request) string {
	if visit := visitOf(r); visit != "" {
		return visit
	}
	visit := rand.Text()
	c.setVisit(w, r, visit)
	return visit
}

// formToken is the token in the forms of a visit: only a reader of our pages can know it.
func (c *Console) formToken(visit string) string {
	mac := hmac.New(sha256.New, c.key)
	_, _ = mac.Write([]byte(visit)) // a hash takes everything
	return hex.EncodeToString(mac.Sum(nil))
}

// ownForm reports whether a request carries the token of its visit.
func (c *Console) ownForm(r *http.Request, token string) bool {
	visit := visitOf(r)
	return visit != "" && hmac.Equal([]byte(token), []byte(c.formToken(visit)))
}
