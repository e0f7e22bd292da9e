package pgtest

import (
	"net/url"
	"testing"
)

// WithMode is the address of a database with a query mode of pgx.
func WithMode(t testing.TB, address, mode string) string {
	t.Helper()
	parsed, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	query := parsed.Query()
	query.Set("default_query_exec_mode", mode)
	parsed.RawQuery = query.Encode()
	return parsed.String()
}
