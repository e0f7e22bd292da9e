package file_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/destinations/file"
	"github.com/packfinderz/outbox/outboxtest/publishertest"
)

// wantLines fails unless a file has so many lines.
func wantLines(t *testing.T, path string, want int) {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(content), "\n"); n != want {
		t.Errorf("%s has %d lines, want %d", filepath.Base(path), n, want)
	}
}

// TestMovedFile has somebody move the file away, as those do that rotate logs: lines go to the file that
// is at the path, and one that went to another is not acknowledged.
func TestMovedFile(t *testing.T) {
	t.Parallel()
	t.Run("between two batches", func(t *testing.T) {
		t.Parallel()
		path := filepath.Join(t.TempDir(), "events.jsonl")
		destination := open(t, "file:"+path)
		publishertest.Deliver(t, destination, publishertest.Messages(2))
		steps(rename(path, path+".1"))(t)
		publishertest.Deliver(t, destination, publishertest.Messages(3))
		wantLines(t, path+".1", 2)
		wantLines(t, path, 3)
	})
	t.Run("in the middle of one", func(t *testing.T) {
		t.Parallel()
		path := filepath.Join(t.TempDir(), "events.jsonl")
		destination, err := file.OpenWatched(path, func(file file.DiskFile) file.DiskFile {
			return movedFile{file, rename(path, path+".1")}
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := destination.Close(); err != nil {
				t.Error(err)
			}
		})
		for i, err := range publishertest.Publish(t, destination, publishertest.Messages(2)) {
			if outbox.Classify(err) != outbox.ClassUnavailable {
				t.Errorf("message %d, which is in a file that was moved away: %v", i, err)
			}
		}
		publishertest.Deliver(t, destination, publishertest.Messages(3))
		wantLines(t, path, 3)
	})
}

// movedFile is moved while it is written to.
type movedFile struct {
	file.DiskFile
	move func() error
}

func (f movedFile) Sync() error {
	if err := f.DiskFile.Sync(); err != nil {
		return err
	}
	return f.move()
}

// hungFile does not come to the end of a write before it is let go.
type hungFile struct {
	file.DiskFile
	entered, letGo chan struct{}
}

func (f hungFile) Write(lines []byte) (int, error) {
	close(f.entered)
	<-f.letGo
	return f.DiskFile.Write(lines)
}

// hang opens a file whose disk hangs, and gives up a publish in the middle of its write.
func hang(t *testing.T) (destination *file.Publisher, letGo func()) {
	t.Helper()
	hung := hungFile{entered: make(chan struct{}), letGo: make(chan struct{})}
	destination, err := file.OpenWatched(filepath.Join(t.TempDir(), "events.jsonl"), func(file file.DiskFile) file.DiskFile {
		hung.DiskFile = file
		return hung
	})
	if err != nil {
		t.Fatal(err)
	}
	letGo = sync.OnceFunc(func() { close(hung.letGo) })
	t.Cleanup(letGo)
	ctx, cancel := context.WithCancel(t.Context())
	answered := make(chan []error, 1)
	go func() { answered <- destination.Publish(ctx, publishertest.Messages(1)) }()
	<-hung.entered
	cancel()
	select {
	case errs := <-answered:
		if outbox.Classify(errs[0]) != outbox.ClassUnavailable {
			t.Errorf("a write that hangs is %v", errs[0])
		}
	case <-time.After(20 * time.Second):
		t.Fatal("a publish waits for a write that hangs")
	}
	return destination, letGo
}

// TestHungDisk has a disk that hangs: nobody waits for it longer than his context, in a publish or a ping, and nobody
// forever at the end.
func TestHungDisk(t *testing.T) {
	t.Parallel()
	destination, _ := hang(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if outbox.Classify(destination.Ping(ctx)) != outbox.ClassUnavailable {
		t.Error("a ping says that a disk is well that hangs")
	}
	if err := destination.Close(); err == nil || !strings.Contains(err.Error(), "hangs") {
		t.Errorf("it was closed in the middle of a write: %v", err)
	}
}

// TestSlowDiskAtTheEnd closes a file while a write that was given up is under way: it comes to its end first.
func TestSlowDiskAtTheEnd(t *testing.T) {
	t.Parallel()
	destination, letGo := hang(t)
	time.AfterFunc(100*time.Millisecond, letGo)
	if err := destination.Close(); err != nil {
		t.Errorf("closed beside a write that came to its end: %v", err)
	}
}

// TestForeignFile opens a file that somebody else has written. It is taken only when that is asked for, and never where its last
// line has no end: ours would be part of it.
func TestForeignFile(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ content, option, words string }{
		"whole":                   {"dear diary\n", "", "?append=true"},
		"whole, to append":        {"dear diary\n", "?append=true", ""},
		"half a line":             {"hello\ndear diary", "", "its last line has no end"},
		"half a line, to append":  {"hello\ndear diary", "?append=true", "its last line has no end"},
		"ours":                    {`{"id":"1"}` + "\n", "", ""},
		"foreign, then ours":      {"dear diary\n" + `{"id":"1"}` + "\n", "", ""},
		"JSON of somebody else's": {`{"idea":"1"}` + "\n", "", "?append=true"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "file")
			if err := os.WriteFile(path, []byte(c.content), 0o600); err != nil {
				t.Fatal(err)
			}
			if c.words == "" {
				publishertest.Deliver(t, open(t, "file:"+path+c.option), publishertest.Messages(1))
				wantLines(t, path, strings.Count(c.content, "\n")+1)
			} else if _, err := tryOpen("file:" + path + c.option); err == nil || !strings.Contains(err.Error(), c.words) || !outbox.IsMisconfigured(err) {
				t.Errorf("got %v, want %q", err, c.words)
			}
			if got, err := os.ReadFile(path); err != nil || !strings.HasPrefix(string(got), c.content) {
				t.Errorf("the file has %q (%v), want what was in it: %q", got, err, c.content)
			}
		})
	}
}

// appendTo writes to a file as somebody else does.
func appendTo(path, text string) func() error {
	return func() error {
		file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		_, err = file.WriteString(text)
		return errors.Join(err, file.Close())
	}
}

// TestForeignWriter has somebody else change the file between two batches: nothing is written until the file is as it was left, is
// another, or may be shared.
func TestForeignWriter(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		option, words string
		change        func(path string) func() error
		taken         bool
	}{
		"half a line":             {change: func(p string) func() error { return appendTo(p, "dear") }, words: "somebody else has written to it"},
		"a line":                  {change: func(p string) func() error { return appendTo(p, "dear diary\n") }, words: "?append=true"},
		"a line, to append":       {option: "?append=true", change: func(p string) func() error { return appendTo(p, "dear diary\n") }, taken: true},
		"half a line, to append":  {option: "?append=true", change: func(p string) func() error { return appendTo(p, "dear") }, words: "has no end"},
		"truncated":               {change: func(p string) func() error { return func() error { return os.Truncate(p, 0) } }, words: "truncated it from"},
		"truncated, to append":    {option: "?append=true", change: func(p string) func() error { return func() error { return os.Truncate(p, 5) } }, words: "truncated it from"},
		"truncated in the middle": {change: func(p string) func() error { return func() error { return os.Truncate(p, 5) } }, words: "truncated it from"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "events.jsonl")
			destination := open(t, "file:"+path+c.option)
			publishertest.Deliver(t, destination, publishertest.Messages(2))
			left, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			steps(c.change(path))(t)
			if c.taken {
				publishertest.Deliver(t, destination, publishertest.Messages(1))
				wantLines(t, path, 4)
				return
			}
			for range 2 {
				publishertest.Away(t, publishertest.Publish(t, destination, publishertest.Messages(1))[0], false, true, c.words)
				publishertest.Away(t, destination.Ping(t.Context()), false, true, c.words)
			}
			steps(func() error { return os.WriteFile(path, left, 0o600) })(t)
			publishertest.Deliver(t, destination, publishertest.Messages(1))
			wantLines(t, path, 3)
		})
	}
}

// TestForeignWriterMeanwhile has somebody else write in the middle of a batch: before our lines, which are not acknowledged then, or behind
// them.
func TestForeignWriterMeanwhile(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]bool{"before ours": true, "behind ours": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "events.jsonl")
			destination, err := file.OpenWatched(path, func(file file.DiskFile) file.DiskFile {
				return sharedFile{file, appendTo(path, "dear"), before}
			})
			if err != nil {
				t.Fatal(err)
			}
			err = publishertest.Publish(t, destination, publishertest.Messages(1))[0]
			if before {
				publishertest.Fails(t, err, outbox.ClassUnavailable, "meanwhile")
			} else if err != nil {
				t.Error(err)
			}
			err = publishertest.Publish(t, destination, publishertest.Messages(1))[0]
			publishertest.Fails(t, err, outbox.ClassUnavailable, "somebody else has written to it")
			if err := destination.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestEmptiedMeanwhile has somebody else empty a new file in the middle of a batch: what is gone is not acknowledged.
func TestEmptiedMeanwhile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "events.jsonl")
	destination, err := file.OpenWatched(path, func(file file.DiskFile) file.DiskFile {
		return sharedFile{file, func() error { return os.Truncate(path, 0) }, false}
	})
	if err != nil {
		t.Fatal(err)
	}
	err = publishertest.Publish(t, destination, publishertest.Messages(1))[0]
	publishertest.Fails(t, err, outbox.ClassUnavailable, "meanwhile")
	if err := destination.Close(); err != nil {
		t.Error(err)
	}
}

// sharedFile is written to by somebody else whenever we do.
type sharedFile struct {
	file.DiskFile
	other  func() error
	before bool
}

func (f sharedFile) Write(lines []byte) (n int, err error) {
	if f.before {
		err = f.other()
	}
	if err == nil {
		n, err = f.DiskFile.Write(lines)
	}
	if err == nil && !f.before {
		err = f.other()
	}
	return n, err
}
