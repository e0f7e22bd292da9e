//go:build unix

package main

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"

	"github.com/packfinderz/outbox/destinations/gcppubsub/pubsubtest"
	"github.com/packfinderz/outbox/destinations/redis/redistest"
	"github.com/packfinderz/outbox/outboxtest/testserver"
	"github.com/packfinderz/outbox/packfinderz/internal/backendtest"
	"github.com/packfinderz/outbox/packfinderz/pkg/outbox/registry"
)

// write makes a file of variables.
func write(t *testing.T, lines ...string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), ".env")
	if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// A value is as it stands; the environment counts more, and a line that is none is named without what is in it.
func TestDotenv(t *testing.T) {
	t.Parallel()
	got, err := dotenv(write(t, "# a comment", "", "A=postgres://u:p#a$$s@h/db?x=1&y=2", ` B= "two words" `, `export C='x'`, `D={"key": "a\nb"}`, "E=", "F=file"))
	if err != nil {
		t.Fatal(err)
	}
	lookup := over(backendtest.Lookup(map[string]string{"F": "environment", "C": ""}), got)
	for name, want := range map[string]string{
		"A": "postgres://u:p#a$$s@h/db?x=1&y=2", "B": "two words", "C": "", "D": `{"key": "a\nb"}`, "E": "", "F": "environment",
	} {
		if value, ok := lookup(name); value != want || !ok {
			t.Errorf("%s is %q, want %q", name, value, want)
		}
	}
	for _, line := range []string{"s3cret", "A B=s3cret", "=s3cret"} {
		_, err := dotenv(write(t, "A=1", line))
		if err == nil || strings.Contains(err.Error(), "s3cret") || !strings.Contains(err.Error(), "line 2") {
			t.Errorf("a line that is none: %v", err)
		}
	}
	if got, err := dotenv(filepath.Join(t.TempDir(), ".env")); err != nil || len(got) != 0 {
		t.Errorf("without a file: %q, %v", got, err)
	}
}

// Every make target that runs programs gives them the variables of the file: that is all the environment they have here. It is not
// parallel, as the targets build into one folder.
func TestMakeReadsTheEnvFile(t *testing.T) { //nolint:paralleltest // see above
	url, _ := backendtest.Database(t)
	broker := pubsubtest.New(t)
	topics := registry.DefaultTopics()
	for _, topic := range append(topics.Names(), "pf-domain-events-dead") {
		broker.CreateTopic(t, topic)
	}
	_, err := broker.Server.GServer.CreateSubscription(t.Context(), &pubsubpb.Subscription{
		Name: "projects/" + pubsubtest.Project + "/subscriptions/pf-domain-events-worker", Topic: pubsubtest.TopicPath(topics.Domain),
		EnableMessageOrdering: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	redis := redistest.New(t)
	makes(t, "local") // so that nobody waits for the compiler below
	for target, programs := range map[string][]string{
		"run-outbox-publisher": {"PUBLISHER"}, "run-worker": {"WORKER"}, "run-api": {"API"}, "run": {"PUBLISHER", "WORKER", "API"},
	} {
		var addresses []string
		lines := []string{
			"PACKFINDERZ_DATABASE_URL=" + url, "PACKFINDERZ_REDIS_URL=" + redis.URL(),
			"PACKFINDERZ_PUBSUB_PROJECT=" + pubsubtest.Project, "PUBSUB_EMULATOR_HOST=" + broker.Endpoint(),
		}
		for _, program := range programs {
			address := backendtest.Address(t)
			addresses = append(addresses, address)
			lines = append(lines, "PACKFINDERZ_"+program+"_LISTEN="+address)
		}
		runs(t, target, write(t, lines...), addresses)
	}
}

// patience limits the end of make, after a failure. It is not a measure of speed.
const patience = 30 * time.Second

// runs has make run a target with a file, and the programs be ready and end.
func runs(t *testing.T, target, file string, addresses []string) {
	t.Helper()
	cmd := exec.Command("make", "-C", "../..", target, "ENV_FILE="+file)
	cmd.Env = slices.DeleteFunc(bare(), func(variable string) bool { return strings.HasPrefix(variable, "REDIS_URL=") })
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	log := filepath.Join(t.TempDir(), "log")
	process, err := testserver.Start(cmd, log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // a make that is killed leaves its programs behind; mostly it has ended
		select {
		case <-process.Done():
		case <-time.After(patience):
		}
		process.Kill()
	})
	defer func() {
		if content, err := os.ReadFile(log); t.Failed() && err == nil {
			t.Logf("make %s: %s", target, content)
		}
	}()
	for _, address := range addresses {
		backendtest.AwaitStatus(t, address, "/readyz", http.StatusOK)
	}
	if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGINT); err != nil { // all of them, as a terminal does at Ctrl-C
		t.Fatal(err)
	}
	for _, address := range addresses {
		backendtest.AwaitStatus(t, address, "/healthz", 0)
	}
	<-process.Done()
	content, err := os.ReadFile(log)
	// GNU make says so of itself when its child has ended before it looks.
	own := strings.NewReplacer("*** wait: No child processes", "", "*** Waiting for unfinished jobs", "").Replace(string(content))
	if err != nil || strings.Contains(own, "***") {
		t.Errorf("make %s takes the end that it asked for as a failure (%v)", target, err)
	}
}
