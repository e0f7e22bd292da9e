//go:build unix

package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"cloud.google.com/go/pubsub/v2/pstest"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/packfinderz/outbox/destinations/gcppubsub/pubsubtest"
	"github.com/packfinderz/outbox/destinations/redis/redistest"
	"github.com/packfinderz/outbox/outboxtest/testserver"
	"github.com/packfinderz/outbox/packfinderz/internal/backendtest"
	"github.com/packfinderz/outbox/packfinderz/pkg/outbox/registry"
)

func TestMain(m *testing.M) { backendtest.Main(m) }

// patience limits the start of a program. It is not a measure of speed.
const patience = time.Minute

const subscription = "compliance"

// system is the backend as it is deployed: servers, and programs in processes of their own.
type system struct {
	*testing.T
	folder string // of the built programs, and their logs
	url    string
	worker string // the database's address for the worker's role
	pool   *pgxpool.Pool
	redis  *redistest.Broker
	broker *pubsubtest.Broker
}

func newSystem(t *testing.T) *system {
	t.Helper()
	url, pool := backendtest.Database(t)
	s := &system{
		T: t, folder: t.TempDir(), url: url, worker: backendtest.WorkerURL(t, url, pool), pool: pool,
		redis: redistest.New(t), broker: pubsubtest.New(t),
	}
	build := exec.CommandContext(t.Context(), "go", "build", "-o", s.folder+"/", "../../cmd/api", "../../cmd/outbox-publisher", "../../cmd/worker")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, output)
	}
	topics := registry.DefaultTopics()
	for _, topic := range append(topics.Names(), "pf-domain-events-dead") {
		s.broker.CreateTopic(t, topic)
	}
	s.subscribe()
	return s
}

// subscribe makes the worker's subscription.
func (s *system) subscribe() {
	s.Helper()
	_, err := s.broker.Server.GServer.CreateSubscription(s.Context(), &pubsubpb.Subscription{
		Name:  "projects/" + pubsubtest.Project + "/subscriptions/" + subscription,
		Topic: pubsubtest.TopicPath(registry.DefaultTopics().Domain), EnableMessageOrdering: true, AckDeadlineSeconds: 10,
	})
	if err != nil {
		s.Fatal(err)
	}
}

// process is a program that runs.
type process struct {
	*testserver.Process
	address string
}

// start runs a program until it is killed, at the end of the test at the latest. Its sessions in PostgreSQL have a name.
func (s *system) start(program, session string) *process {
	s.Helper()
	p := &process{address: backendtest.Address(s)}
	environment := map[string]string{
		"PACKFINDERZ_DATABASE_URL":               s.url + "&application_name=" + session,
		"PACKFINDERZ_WORKER_DATABASE_URL":        s.worker + "&application_name=" + session,
		"PACKFINDERZ_REDIS_URL":                  s.redis.URL(),
		"PACKFINDERZ_PUBSUB_PROJECT":             pubsubtest.Project,
		"PUBSUB_EMULATOR_HOST":                   s.broker.Endpoint(),
		"PACKFINDERZ_PUBSUB_DOMAIN_SUBSCRIPTION": subscription,
		"PACKFINDERZ_OUTBOX_PUBLISH_BATCH_SIZE":  "5",
		"PACKFINDERZ_OUTBOX_PUBLISH_POLL_MS":     "50",
		"PACKFINDERZ_EVENTING_PROCESSING_TTL":    "2s",
		"PACKFINDERZ_WORKER_ACK_DEADLINE":        "10s",
		"PACKFINDERZ_API_LISTEN":                 p.address,
		"PACKFINDERZ_PUBLISHER_LISTEN":           p.address,
		"PACKFINDERZ_WORKER_LISTEN":              p.address,
	}
	cmd := exec.Command(filepath.Join(s.folder, program))
	for name, value := range maps.All(environment) {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	var err error
	if p.Process, err = testserver.Start(cmd, s.log(session)); err != nil {
		s.Fatal(err)
	}
	s.Cleanup(p.Kill)
	err = p.AwaitReady(patience, func() error {
		if status := backendtest.Request(s, http.MethodGet, "http://"+p.address+"/readyz", ""); status != http.StatusOK {
			return fmt.Errorf("readiness is %d", status)
		}
		return nil
	})
	if err != nil {
		s.Fatal(err)
	}
	return p
}

// published are the messages of the domain topic, those that were sent twice twice.
func (s *system) published() (list []*pstest.Message) {
	for _, m := range s.broker.Server.Messages() {
		if m.Topic == pubsubtest.TopicPath(registry.DefaultTopics().Domain) {
			list = append(list, m)
		}
	}
	return list
}

// marks are the events that Redis knows as handled.
func (s *system) marks() (n int) {
	s.Helper()
	const prefix = "pf:evt:processed:compliance:"
	keys, err := s.redis.Client().Keys(s.Context(), prefix+"*").Result()
	if err != nil {
		s.Fatal(err)
	}
	for _, key := range keys {
		if strings.HasPrefix(s.redis.Client().Get(s.Context(), key).Val(), "done:") {
			n++
		}
	}
	return n
}

// log is the file of a session's log.
func (s *system) log(session string) string { return filepath.Join(s.folder, session+".log") }

// logged is how often some words are in the logs of sessions.
func (s *system) logged(words string, sessions ...string) (n int) {
	s.Helper()
	for _, session := range sessions {
		text, err := os.ReadFile(s.log(session))
		if err != nil {
			s.Fatal(err)
		}
		n += strings.Count(string(text), words)
	}
	return n
}

// body is a request's, as JSON.
func (s *system) body(name, value string) string {
	s.Helper()
	doc, err := json.Marshal(map[string]string{name: value})
	if err != nil {
		s.Fatal(err)
	}
	return string(doc)
}

// lines counts, by event, the lines of some logs that say something.
func (s *system) lines(message string, sessions ...string) map[string]int {
	s.Helper()
	found := make(map[string]int)
	for _, session := range sessions {
		file, err := os.Open(s.log(session))
		if err != nil {
			s.Fatal(err)
		}
		lines := bufio.NewScanner(file)
		for lines.Scan() {
			var fields struct {
				Message string `json:"msg"`
				Event   string `json:"event_id"`
			}
			if json.Unmarshal(lines.Bytes(), &fields) == nil && fields.Message == message {
				found[fields.Event]++
			}
		}
		if err := lines.Err(); err != nil {
			s.Error(fmt.Errorf("read the log of %s: %w", session, err))
		}
		_ = file.Close() // opened for reading
	}
	return found
}
