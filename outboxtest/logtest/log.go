// Package logtest keeps what is logged, for tests that look for a line.
package logtest

import (
	"bytes"
	"strings"
	"sync"
	"testing"

	"github.com/packfinderz/outbox/outboxtest/await"
)

// Log is where a logger, or a process, writes to while a test reads.
type Log struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

// Write adds to the log.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buffer.Write(p)
}

// Text is all that was written.
func (l *Log) Text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buffer.String()
}

// Count is how often the words were written.
func (l *Log) Count(words string) int { return strings.Count(l.Text(), words) }

// Await returns when the words have been written.
func (l *Log) Await(t testing.TB, words string) {
	t.Helper()
	await.Until(t, "the log to say "+words, func() bool { return l.Count(words) > 0 })
}

// Line is the first line with the words, or empty.
func (l *Log) Line(words string) string {
	for line := range strings.Lines(l.Text()) {
		if strings.Contains(line, words) {
			return line
		}
	}
	return ""
}
