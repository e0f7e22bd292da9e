package main

import (
	"bytes"
	"context"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/packfinderz/outbox/outboxtest/await"
	"github.com/packfinderz/outbox/outboxtest/testserver"
)

// TestRun does what README.md says: runs it all, stores a file with the command that is printed, and sees its event
// delivered in the admin.
func TestRun(t *testing.T) {
	t.Parallel()
	port, err := testserver.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var out transcript
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, testserver.Loopback(port), &out) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("%v; it said:\n%s", err, out.String())
		}
	}()
	printed := regexp.MustCompile(`curl -F file=@README.md (http://\S+)/files\nSee its event: (\S+) as (\S+) with password (\S+)\n`)
	var words []string
	// Without a limit: on a slow machine the compiler takes what it takes.
	err = await.Poll(t.Context(), func() bool {
		words = printed.FindStringSubmatch(out.String())
		return words != nil || len(ended) > 0
	})
	if err != nil || words == nil {
		t.FailNow() // how it ended says why
	}
	b := newBrowser(t, words[1])
	b.upload("/files", "README.md")
	b.logIn("/admin/login/", words[3], words[4])
	list := strings.TrimPrefix(words[2], words[1])
	await.Until(t, "the event in the admin", func() bool {
		page := b.get(list + "?status__exact=delivered")
		return strings.Contains(page, "file.stored") && strings.Contains(page, "0 of 5")
	})
}

// transcript is what several processes print.
type transcript struct {
	sync.Mutex
	text bytes.Buffer
}

func (s *transcript) Write(p []byte) (int, error) {
	s.Lock()
	defer s.Unlock()
	return s.text.Write(p)
}

func (s *transcript) String() string {
	s.Lock()
	defer s.Unlock()
	return s.text.String()
}
