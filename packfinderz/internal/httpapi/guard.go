package httpapi

import (
	"crypto/sha256"
	"crypto/subtle"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// LeastSecret is how long a gateway's secret is at least, in characters.
const LeastSecret = 32

// Guard lets a gateway's requests through, and no others: those that bear its secret, as "Authorization: Bearer …".
// Without a secret only the machine itself is answered: a request must come from the loopback and be addressed to it,
// because a page of somebody else's can have its own name point at the loopback.
func Guard(secret string, next http.Handler, log *slog.Logger) http.Handler {
	a := &api{log: log}
	refuse := a.answer(func(*http.Request) (int, any, error) { return 0, nil, errNotGateway })
	want := sha256.Sum256([]byte(secret))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		allowed := isLocal(r)
		if secret != "" {
			got := sha256.Sum256([]byte(bearer(r)))
			allowed = subtle.ConstantTimeCompare(got[:], want[:]) == 1
		}
		if !allowed {
			w.Header().Set("WWW-Authenticate", "Bearer")
			refuse(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func bearer(r *http.Request) string {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return token
}

func isLocal(r *http.Request) bool {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return err == nil && from.Addr().Unmap().IsLoopback() && IsLoopback(host)
}

// IsLoopback reports whether a host can be nothing but this machine. An empty one is every address that it has.
func IsLoopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	address, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil && address.Unmap().IsLoopback()
}
