//go:build unix

package monorepo

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"

	"github.com/packfinderz/outbox/destinations/gcppubsub/pubsubtest"
	"github.com/packfinderz/outbox/destinations/redis/redistest"
	"github.com/packfinderz/outbox/outboxtest/testdb"
	"github.com/packfinderz/outbox/outboxtest/testserver"
	"github.com/packfinderz/outbox/packfinderz/internal/backendtest"
	"github.com/packfinderz/outbox/packfinderz/pkg/outbox/registry"
)

// lines are those of a file that are neither empty nor a comment.
func lines(t *testing.T, file string) (list []string) {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(content)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			list = append(list, line)
		}
	}
	return list
}

// Every process of the Procfile starts as Heroku starts it: by a shell, with the variables of .env.example, which point at servers of
// the test's own here, and a PORT. The release makes the tables and ends; the others answer at their PORT.
func TestProcfile(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	// As Heroku's buildpack does, at the top of the repository; docs/deployment.md names the packages.
	build := exec.CommandContext(t.Context(), "go", append([]string{"install"}, buildpackPackages(t)...)...)
	build.Dir, build.Env = top, append(os.Environ(), "GOBIN="+filepath.Join(folder, "bin"))
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go install: %v\n%s", err, output)
	}
	broker := pubsubtest.New(t)
	servers := map[string]string{
		"PACKFINDERZ_DATABASE_URL": testdb.URL(t), "PACKFINDERZ_REDIS_URL": redistest.New(t).URL(), "PUBSUB_EMULATOR_HOST": broker.Endpoint(),
	}
	environment, project := []string{"PATH=" + os.Getenv("PATH")}, ""
	for _, line := range lines(t, backend+"/.env.example") {
		name, value, _ := strings.Cut(line, "=")
		if server, ok := servers[name]; ok {
			value = server
			delete(servers, name)
		}
		if name == "PACKFINDERZ_PUBSUB_PROJECT" {
			project = value
		}
		environment = append(environment, name+"="+value)
	}
	if len(servers) > 0 {
		t.Fatalf(".env.example does not name %v", servers)
	}
	createTopics(t, broker, project)

	answered := 0
	for _, line := range lines(t, procfile) {
		process, command, _ := strings.Cut(line, ": ")
		port, err := testserver.FreePort()
		if err != nil {
			t.Fatal(err)
		}
		// exec, as Heroku's shell does: the signals are for the program.
		cmd := exec.Command("sh", "-c", "exec "+command)
		cmd.Dir, cmd.Env = folder, slices.Concat(environment, []string{fmt.Sprintf("PORT=%d", port)})
		if process == "release" {
			if output, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%s: %v\n%s", process, err, output)
			}
			continue
		}
		running, err := testserver.Start(cmd, filepath.Join(folder, process+".log"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(running.Kill)
		address := net.JoinHostPort("127.0.0.1", fmt.Sprint(port))
		err = running.AwaitReady(time.Minute, func() error {
			for _, path := range []string{"/healthz", "/readyz"} {
				if status := backendtest.Request(t, http.MethodGet, "http://"+address+path, ""); status != http.StatusOK {
					return fmt.Errorf("%s answers with %d", path, status)
				}
			}
			return nil
		})
		if err != nil {
			t.Errorf("%s: %v", process, err)
		}
		answered++
	}
	if answered != 2 {
		t.Errorf("%d processes have answered at their PORT, want the publisher and the worker", answered)
	}
}

// buildpackPackages are those that the page on deployment has Heroku's buildpack install.
func buildpackPackages(t *testing.T) []string {
	t.Helper()
	page, err := os.ReadFile(backend + "/docs/deployment.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(page), "GO_INSTALL_PACKAGE_SPEC='")
	packages, _, closed := strings.Cut(rest, "'")
	if !found || !closed {
		t.Fatal("the page names no packages")
	}
	return strings.Fields(packages)
}

// createTopics makes what the defaults name, in a project of any name.
func createTopics(t *testing.T, broker *pubsubtest.Broker, project string) {
	t.Helper()
	path := func(topic string) string { return "projects/" + project + "/topics/" + topic }
	topics := registry.DefaultTopics()
	for _, topic := range append(topics.Names(), "pf-domain-events-dead") {
		if _, err := broker.Server.GServer.CreateTopic(t.Context(), &pubsubpb.Topic{Name: path(topic)}); err != nil {
			t.Fatal(err)
		}
	}
	_, err := broker.Server.GServer.CreateSubscription(t.Context(), &pubsubpb.Subscription{
		Name: "projects/" + project + "/subscriptions/pf-domain-events-worker", Topic: path(topics.Domain), EnableMessageOrdering: true,
	})
	if err != nil {
		t.Fatal(err)
	}
}
