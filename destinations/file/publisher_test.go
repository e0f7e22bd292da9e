package file_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/destinations/file"
	"github.com/packfinderz/outbox/destinations/wire"
	"github.com/packfinderz/outbox/outboxtest/publishertest"
)

// harness reads JSON Lines back.
type harness struct {
	destination *file.Publisher
	read        func() []byte
}

func (h *harness) Publisher() outbox.Publisher { return h.destination }

func (h *harness) Received(t testing.TB) (list []publishertest.Received) {
	t.Helper()
	scanner := bufio.NewScanner(bytes.NewReader(h.read()))
	scanner.Buffer(nil, 1<<22)
	for scanner.Scan() {
		var line struct {
			outbox.Message

			Payload       json.RawMessage `json:"payload"`
			PayloadBase64 []byte          `json:"payloadBase64"`
		}
		if err := json.Unmarshal(scanner.Bytes(), &line); err != nil {
			t.Fatalf("%v: %s", err, scanner.Bytes())
		}
		if line.PayloadBase64 != nil {
			line.Payload = line.PayloadBase64
		}
		attributes := make(map[string]string)
		for _, a := range wire.Attributes(&line.Message) {
			attributes[a.Name] = a.Value
		}
		list = append(list, publishertest.Received{
			ID: line.ID, Payload: line.Payload, Topic: line.Topic, Key: line.Key, Attributes: attributes, ContentType: line.ContentType,
		})
	}
	if err := scanner.Err(); err != nil {
		t.Fatal(err)
	}
	return list
}

// output is a standard output that several goroutines may use.
type output struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buffer.Write(p)
}

func (o *output) bytes() []byte {
	o.mu.Lock()
	defer o.mu.Unlock()
	return bytes.Clone(o.buffer.Bytes())
}

// tryOpen opens the file that a URL names.
func tryOpen(url string) (*file.Publisher, error) {
	config, err := file.ParseURL(url)
	if err != nil {
		return nil, err
	}
	destination, err := file.New(config)
	if err != nil {
		return nil, err
	}
	return destination, destination.Open()
}

func open(t *testing.T, url string) *file.Publisher {
	t.Helper()
	destination, err := tryOpen(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for range 2 { // a publisher must not mind
			if err := destination.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	return destination
}

func TestLines(t *testing.T) {
	t.Parallel()
	features := publishertest.Features{Ordered: true, Attributes: true, Keys: true, ContentType: true, Binary: true, Poison: func(m *outbox.Message) {
		m.CreatedAt = m.CreatedAt.AddDate(10_000, 0, 0) // no date of JSON
	}}
	t.Run("a writer", func(t *testing.T) {
		t.Parallel()
		publishertest.Run(t, features, func(t *testing.T) publishertest.Harness {
			t.Helper()
			out := &output{}
			return &harness{file.NewWriter(out), out.bytes}
		})
	})
	t.Run("file", func(t *testing.T) {
		t.Parallel()
		publishertest.Run(t, features, func(t *testing.T) publishertest.Harness {
			t.Helper()
			path := filepath.Join(t.TempDir(), "events.jsonl")
			return &harness{open(t, "file:"+path), func() []byte {
				content, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				return content
			}}
		})
	})
}

// TestLine holds a line against what is promised, byte for byte.
func TestLine(t *testing.T) {
	t.Parallel()
	out := &output{}
	message := publishertest.Messages(1)[0]
	message.ID, message.TenantID = uuid.MustParse("01890000-0000-7000-8000-000000000000"), uuid.Nil
	message.CreatedAt = message.CreatedAt.Truncate(0)
	message.Payload = []byte(`{ "b" : 1.00, "a": "<&>" }`)
	file.NewWriter(out).Publish(t.Context(), []outbox.Message{message})
	created, err := json.Marshal(message.CreatedAt)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"id":"01890000-0000-7000-8000-000000000000","namespace":"shop","topic":"orders","type":"order_created",` +
		`"aggregateType":"order","aggregateId":"0","tenantId":null,"dedupeKey":"k0","key":"order/0","createdAt":` + string(created) +
		`,"attempt":1,"headers":{"trace":"t1"},"contentType":"application/json","payload":{ "b" : 1.00, "a": "<&>" }}` + "\n"
	if got := string(out.bytes()); got != want {
		t.Errorf("got  %swant %s", got, want)
	}
}

// TestHalfLine opens a file whose last writer was killed in the middle of a line.
func TestHalfLine(t *testing.T) {
	t.Parallel()
	whole := `{"id":"1"}` + "\n"
	for name, content := range map[string]string{
		"short": whole + `{"id":"2`, "long": whole + `{"id":"` + strings.Repeat("x", 200_000), "whole": whole,
	} {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		open(t, "file:"+path).Publish(t.Context(), publishertest.Messages(1))
		got, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if lines := strings.SplitAfter(string(got), "\n"); len(lines) != 3 || lines[0] != whole || !json.Valid([]byte(lines[1])) {
			t.Errorf("%s: %d lines, %.80s", name, len(lines)-1, got)
		}
		// One writer at a time: a failed write is taken back by its length.
		if _, err := tryOpen("file:" + path); err == nil || !strings.Contains(err.Error(), "another process") {
			t.Errorf("a second writer: %v", err)
		}
	}
	only := filepath.Join(t.TempDir(), "only")
	if err := os.WriteFile(only, []byte(`{"id`), 0o600); err != nil {
		t.Fatal(err)
	}
	open(t, "file:"+only)
	if got, err := os.ReadFile(only); err != nil || len(got) != 0 {
		t.Errorf("a file that is only half a line became %q (%v)", got, err)
	}
}

// TestNoFile has a device and a pipe where a file should be: what is written there is on no disk.
func TestNoFile(t *testing.T) {
	t.Parallel()
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/dev/null", pipe} {
		if _, err := tryOpen("file:" + path); !outbox.IsMisconfigured(err) || !strings.Contains(err.Error(), "keeps nothing") {
			t.Errorf("%s: %v", path, err)
		}
	}
	path := filepath.Join(t.TempDir(), "events.jsonl")
	destination := open(t, "file:"+path)
	publishertest.Fates(t, destination.Publish(t.Context(), publishertest.Messages(1)), "")
	if err := os.Rename(pipe, path); err != nil {
		t.Fatal(err)
	}
	publishertest.Fates(t, destination.Publish(t.Context(), publishertest.Messages(1)), "misconfigured")
}

// watchedFile notes what is done to a file.
type watchedFile struct {
	file.DiskFile
	done    []string
	syncing error // what a sync answers
}

func (w *watchedFile) Write(p []byte) (int, error) {
	w.done = append(w.done, "write")
	return w.DiskFile.Write(p)
}

func (w *watchedFile) Sync() error {
	w.done = append(w.done, "sync")
	return errors.Join(w.DiskFile.Sync(), w.syncing)
}

// openWatched opens a file, with watch before its file, until the test ends.
func openWatched(t testing.TB, path string, watch func(file.DiskFile) file.DiskFile) *file.Publisher {
	t.Helper()
	destination, err := file.OpenWatched(path, watch)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := destination.Close(); err != nil {
			t.Error(err)
		}
	})
	return destination
}

// TestSync looks at the file when Publish has returned: what is acknowledged is on disk, and what
// could not be brought there is not acknowledged, and gone.
func TestSync(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "events.jsonl")
	watched := &watchedFile{}
	destination := openWatched(t, path, func(file file.DiskFile) file.DiskFile {
		watched.DiskFile = file
		return watched
	})
	size := func() int64 {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	publishertest.Deliver(t, destination, publishertest.Messages(3))
	if got := strings.Join(watched.done, ", "); got != "write, sync" {
		t.Errorf("three messages were acknowledged after: %s; want write, sync", got)
	}
	before := size()
	watched.syncing = syscall.EIO
	for i, err := range publishertest.Publish(t, destination, publishertest.Messages(3)) {
		if err == nil || outbox.Classify(err) != outbox.ClassUnavailable {
			t.Errorf("message %d, which is not on disk: %v", i, err)
		}
	}
	if after := size(); after != before {
		t.Errorf("the file has %d bytes, want the %d from before the sync that failed", after, before)
	}
}
