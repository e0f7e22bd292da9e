package cli_test

import (
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/packfinderz/outbox/internal/testing/pgtest"
)

// TestRolesPage runs docs/roles.md as it is written: the statements as the owner, the commands as the roles that
// they name.
func TestRolesPage(t *testing.T) {
	t.Parallel()
	server := pgtest.Server(t, nil) // roles are a whole server's
	admin := pgtest.Connect(t, server.URL("postgres"))
	page, err := os.ReadFile("../../../../docs/roles.md")
	if err != nil {
		t.Fatal(err)
	}
	as := func(role string) string {
		address := server.URL("shop")
		parsed, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		query := parsed.Query()
		query.Set("role", role)
		parsed.RawQuery = query.Encode()
		return parsed.String()
	}
	blocks := regexp.MustCompile("(?s)```(sql|sh)\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	if len(blocks) < 10 {
		t.Fatalf("the page has %d blocks", len(blocks))
	}
	from := regexp.MustCompile(`postgres://(\w+)@localhost/shop`)
	for i, block := range blocks {
		switch {
		case i == 0: // the roles, and the database
			for statement := range strings.Lines(block[2]) {
				pgtest.Exec(t, admin, statement)
			}
		case block[1] == "sql":
			pgtest.Exec(t, pgtest.Connect(t, as("shop_owner")), block[2])
		default:
			for command := range strings.Lines(block[2]) {
				command, other, _ := strings.Cut(strings.TrimSpace(command), " || ")
				role := from.FindStringSubmatch(command)
				args := strings.Fields(from.ReplaceAllLiteralString(strings.TrimPrefix(command, "outbox "), as(role[1])))
				if got := run(t, "", args...); got.code != 0 && other == "" {
					t.Errorf("%s: exit code %d: %s%s", command, got.code, got.err, got.out)
				}
			}
		}
	}

	// What each may, beside what the page shows.
	for role, commands := range map[string][]string{
		"shop_relay":  {"drain --to file:" + t.TempDir() + "/events"},
		"shop_oncall": {"retry --all", "replay --topic orders", "purge --retention 24h", "hold --key k", "list --state dead", "audit"},
		"shop_viewer": {"stats", "list", "audit", "subscriptions list"},
	} {
		for _, command := range commands {
			if got := run(t, "", append(strings.Fields(command), "--from", as(role))...); got.code != 0 {
				t.Errorf("%s, %s: exit code %d: %s", role, command, got.code, got.err)
			}
		}
	}
}
