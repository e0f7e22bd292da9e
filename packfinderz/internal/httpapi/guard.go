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

// LeastSecret is the smallest length of a gateway's secret, in characters.
const LeastSecret = 32

// Guard lets only the gateway's requests through: those with its secret, as "Authorization: Bearer …". Without a secret
// a request must come from the loopback and be addressed to it: another site can point its own name at the loopback.
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

// IsLoopback reports whether a host can only be this machine. An empty host is not: it means all addresses.
func IsLoopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	address, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil && address.Unmap().IsLoopback()
}
