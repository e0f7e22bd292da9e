//go:build unix

package chaos

// A mailbox that all relays deliver to: one queue, so that what they deliver has one order, whoever it comes from.
//
// It is a datagram socket. Each life of a relay has as its standard output a socket of its own, bound to its name and
// connected to the mailbox. The relay writes each batch at once, and the kernel queues it as one piece: whole or not at
// all, even when the relay is killed over it. So a batch is delivered when it is in the queue, and the queue is the
// order.

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox/internal/testing/process"
)

// maxLetter is more than any batch has bytes.
const maxLetter = 1 << 20

type mailbox struct {
	socket *net.UnixConn
	folder string
	came   chan struct{}

	mu      sync.Mutex
	senders map[string]sender // by address
	sizes   map[string]int64  // by the relay's name
	arrived []Delivery
	first   map[uuid.UUID]*Incarnation // who delivered an event first
	again   map[*Incarnation]int       // how many of the events it delivered first have come again
	ambush  func(relay string) (done bool)
	spoiled []string
	own     map[string]chan struct{} // letters of its own, by address
	last    int                      // how many there were
}

// sender is a life of a relay.
type sender struct {
	relay string
	life  *Incarnation
}

func newMailbox(t *testing.T) *mailbox {
	t.Helper()
	// Not the test's own folder: the address of a socket must be short.
	folder, err := os.MkdirTemp("", "outbox-mail-") //nolint:usetesting // as above
	if err != nil {
		t.Fatal(err)
	}
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(folder, "in"), Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	m := &mailbox{
		socket: socket, folder: folder, came: make(chan struct{}, 1),
		senders: make(map[string]sender), sizes: make(map[string]int64),
		first: make(map[uuid.UUID]*Incarnation), again: make(map[*Incarnation]int),
		own: make(map[string]chan struct{}),
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		m.receive()
	}()
	t.Cleanup(func() {
		_ = socket.Close() // it has no more to say
		<-done
		_ = os.RemoveAll(folder) // it holds sockets only
	})
	return m
}

func (m *mailbox) open(relay *relay, life *Incarnation) (to string, stdout *os.File, err error) {
	from := m.address(filepath.Join(m.folder, life.Name))
	m.mu.Lock()
	m.senders[from.Name] = sender{relay.name, life}
	m.mu.Unlock()
	conn, err := net.DialUnix("unixgram", from, m.address(filepath.Join(m.folder, "in")))
	if err != nil {
		return "", nil, fmt.Errorf("open a way to the mailbox: %w", err)
	}
	defer func() { _ = conn.Close() }() // the file is a copy
	if err := conn.SetWriteBuffer(maxLetter); err != nil {
		return "", nil, fmt.Errorf("make room for letters: %w", err)
	}
	stdout, err = conn.File()
	if err != nil {
		return "", nil, fmt.Errorf("open a way to the mailbox: %w", err)
	}
	return "stdout:", stdout, nil
}

func (m *mailbox) receive() {
	letter := make([]byte, maxLetter)
	for {
		n, from, err := m.socket.ReadFromUnix(letter)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			m.mu.Lock()
			m.spoiled = append(m.spoiled, err.Error())
			m.mu.Unlock()
			return
		}
		m.take(letter[:n], from.Name, time.Now())
		select {
		case m.came <- struct{}{}:
		default: // it has been told already
		}
	}
}

// take puts a letter on record.
func (m *mailbox) take(letter []byte, from string, at time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if came := m.own[from]; came != nil {
		close(came)
		return
	}
	by, known := m.senders[from]
	if !known {
		m.spoiled = append(m.spoiled, "a letter from "+from)
		return
	}
	if m.ambush != nil && m.ambush(by.relay) {
		m.ambush = nil
	}
	m.sizes[by.relay] += int64(len(letter))
	for line := range bytes.Lines(letter) {
		var event struct {
			ID      uuid.UUID `json:"id"`
			Key     string    `json:"key"`
			Payload struct {
				Version int64 `json:"version"`
			} `json:"payload"`
		}
		if line[len(line)-1] != '\n' || json.Unmarshal(line, &event) != nil {
			m.spoiled = append(m.spoiled, fmt.Sprintf("%s: %s", from, line))
			continue
		}
		if first := m.first[event.ID]; first != nil {
			m.again[first]++
		} else {
			m.first[event.ID] = by.life
		}
		m.arrived = append(m.arrived, Delivery{ID: event.ID, By: by.life, Key: event.Key, Version: event.Payload.Version, At: at})
	}
}

func (m *mailbox) size(relay *relay) int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.sizes[relay.name]
}

// deliveries are what is on record when the queue is empty: a relay that has ended may have left letters in it.
func (m *mailbox) deliveries() (arrived []Delivery, spoiled []string, err error) {
	if err := m.empty(); err != nil {
		return nil, nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.arrived), slices.Clone(m.spoiled), nil
}

// lieInWait calls a function with the relay's name for every letter that comes, at once, until it has done its work.
func (m *mailbox) lieInWait(ambush func(relay string) (done bool)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ambush = ambush
}

// empty waits until every letter that has been sent so far is on record: it sends one itself, which comes last.
func (m *mailbox) empty() error {
	m.mu.Lock()
	m.last++
	from := filepath.Join(m.folder, fmt.Sprintf("last.%d", m.last))
	came := make(chan struct{})
	m.own[from] = came
	m.mu.Unlock()
	conn, err := net.DialUnix("unixgram", m.address(from), m.address(filepath.Join(m.folder, "in")))
	if err != nil {
		return fmt.Errorf("open a way to the mailbox: %w", err)
	}
	defer func() { _ = conn.Close() }() // what was sent is sent
	if _, err := conn.Write([]byte("\n")); err != nil {
		return fmt.Errorf("send a letter: %w", err)
	}
	select {
	case <-came:
		return nil
	case <-time.After(process.Patience):
		return errors.New("the mailbox takes no more letters")
	}
}

func (m *mailbox) address(name string) *net.UnixAddr {
	return &net.UnixAddr{Name: name, Net: "unixgram"}
}

func (m *mailbox) letters() <-chan struct{} { return m.came }

// missing is those of some events that have not arrived.
func (m *mailbox) missing(ids []uuid.UUID) []uuid.UUID {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.DeleteFunc(ids, func(id uuid.UUID) bool { return m.first[id] != nil })
}

// cameAgain is how many of the events that a life delivered first have come again.
func (m *mailbox) cameAgain(life *Incarnation) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.again[life]
}
