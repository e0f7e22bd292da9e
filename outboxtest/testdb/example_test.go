package testdb_test

import (
	"fmt"
	"testing"

	"github.com/packfinderz/outbox/layouts/packfinderz"
	"github.com/packfinderz/outbox/outboxtest/testdb"
	"github.com/packfinderz/outbox/outboxtest/testserver"
)

func TestMain(m *testing.M) { testdb.Main(m) }

// A database with the tables of a layout and one of the service's own, for one test.
func Example() {
	t := new(testserver.Example) // in a test: the *testing.T
	defer t.Done()
	files, err := packfinderz.Migrations(packfinderz.Layout())
	if err != nil {
		fmt.Println(err)
		return
	}
	pool := testdb.Pool(t)
	testdb.Migrate(t, pool, files)
	testdb.Exec(t, pool, `CREATE TABLE orders (id uuid PRIMARY KEY)`)

	var tables int
	err = pool.QueryRow(t.Context(), `SELECT count(*) FROM pg_tables WHERE tablename IN ('orders', 'outbox_events', 'outbox_dlq')`).Scan(&tables)
	fmt.Println(tables, err)
	// Output: 3 <nil>
}

// A server of its own crashes and comes back with what was committed.
func ExampleNewServer() {
	t := new(testserver.Example)
	defer t.Done()
	server := testdb.NewServer(t)
	url := server.URL("postgres")
	before := testdb.Connect(t, url)
	testdb.Exec(t, before, `CREATE TABLE orders (id int)`)
	testdb.Exec(t, before, `CHECKPOINT`)
	if err := server.Crash(t.Context()); err != nil {
		fmt.Println(err)
		return
	}
	if err := server.Resume(t.Context()); err != nil {
		fmt.Println(err)
		return
	}
	testdb.Exec(t, testdb.Connect(t, url), `INSERT INTO orders VALUES (1)`)
	fmt.Println("the table is there")
	// Output: the table is there
}
