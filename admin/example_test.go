package admin_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/packfinderz/outbox/admin"
	"github.com/packfinderz/outbox/internal/testing/pgtest"
	"github.com/packfinderz/outbox/ops"
	"github.com/packfinderz/outbox/pgstream"
)

// The console in a server that has pages of its own, and knows who its users are.
func Example() {
	files, err := pgstream.Migrations(pgstream.Shape{})
	if err != nil {
		fmt.Println(err)
		return
	}
	pool, done, err := pgtest.Example("", files)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer done()

	stream, err := ops.Stream(pool, pgstream.Stream{}, pgstream.DefaultSubscription)
	if err != nil {
		fmt.Println(err)
		return
	}
	console, err := admin.New(admin.Config{
		Outboxes: []admin.Outbox{{Name: "orders", Outbox: stream}},
		Prefix:   "/ops/outbox",
		Access: admin.Access{Authenticate: func(r *http.Request) (admin.Identity, bool) {
			// Here the server looks at its own session.
			return admin.Identity{Name: "ann", Role: admin.Operator}, r.Header.Get("X-Session") == "ann's"
		}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer console.Close()

	mux := http.NewServeMux()
	mux.Handle("/ops/outbox/", console)
	server := httptest.NewServer(mux)
	defer server.Close()

	for _, session := range []string{"nobody's", "ann's"} {
		request, err := http.NewRequest(http.MethodGet, server.URL+"/ops/outbox/api/v1/targets/orders/overview", http.NoBody)
		if err != nil {
			fmt.Println(err)
			return
		}
		request.Header.Set("X-Session", session)
		answer, err := server.Client().Do(request)
		if err != nil {
			fmt.Println(err)
			return
		}
		body, err := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		fmt.Println(answer.StatusCode, strings.Contains(string(body), `"backlog":{"n":0}`), err)
	}
	// Output:
	// 401 false <nil>
	// 200 true <nil>
}

// A line for the file of credentials, and who comes in with it.
func ExampleParseCredentials() {
	line, err := admin.NewUser("ann", admin.Operator, "correct horse")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(line[:len("ann:operator:$2a$")])
	_, err = admin.ParseCredentials(strings.NewReader(line + "\nbob:viewer:password"))
	fmt.Println(err)
	// Output:
	// ann:operator:$2a$
	// credentials, line 2: the hash is not one of bcrypt; make it with outbox console user NAME
}
