package admin

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/ops"
	"github.com/packfinderz/outbox/ops/doctor"
	"github.com/packfinderz/outbox/pgstream"
)

// Config configures a console.
type Config struct {
	// Outboxes are the outboxes it shows; at least one.
	Outboxes []Outbox
	// Doctor configures the examinations of the doctor's page.
	Doctor doctor.Config
	// Prefix is the path under which browsers see the console, such as "/outbox". Requests may come with or without
	// it. Default: none.
	Prefix string
	// Access says who may use it. Default: anyone on this machine.
	Access Access
	// Logger logs logins, changes and failures. Default slog.Default().
	Logger *slog.Logger
}

// Outbox is an outbox that the console shows.
type Outbox struct {
	// Name is its name on pages and in addresses.
	Name string
	*ops.Outbox
	// Publisher publishes replayed events of a queue table; without it they cannot be replayed. A stream does not use
	// it: its relay publishes them.
	Publisher outbox.Publisher
	// DefaultTopic is the topic of replayed events that have none.
	DefaultTopic string
}

// Console is the web console and its JSON API. It is an http.Handler.
type Console struct {
	outboxes []*shown
	byName   map[string]*shown
	prefix   string
	access   Access
	doctor   doctor.Config
	log      *slog.Logger
	key      []byte // signs the tokens of forms
	sessions *sessions
	logins   *limiter
	origins  *http.CrossOriginProtection
	pages    *pages
	mux      *http.ServeMux

	// life ends everything that runs beside requests.
	life context.Context
	end  context.CancelFunc
}

// shown is an Outbox with the console's own state.
type shown struct {
	Outbox
	about   ops.Description
	samples *sampler
	jobs    *jobs
	// examining allows one examination at a time, because it queries the database a lot.
	examining chan struct{}
}

// base is the path of an outbox's pages.
func (c *Console) base(t *shown) string { return c.prefix + "/t/" + address(t.Name) }

// address returns an outbox's name for use in an address. A name with special characters, such as a slash, is
// written in hex.
func address(name string) string {
	if pgstream.CheckSubscriptionName(name) == nil {
		return name
	}
	return "~" + hex.EncodeToString([]byte(name))
}

// New returns a console. Close it when done.
func New(config Config) (*Console, error) {
	if err := config.validate(); err != nil {
		return nil, fmt.Errorf("outbox: the console: %w", err)
	}
	c := &Console{
		byName: map[string]*shown{}, prefix: config.Prefix, access: config.Access, doctor: config.Doctor, log: config.Logger,
		key:      []byte(rand.Text()),
		sessions: &sessions{open: map[string]session{}, now: time.Now},
		logins:   &limiter{debt: map[string]time.Time{}, now: time.Now},
		origins:  http.NewCrossOriginProtection(),
	}
	c.log = cmp.Or(c.log, slog.Default())
	var err error
	if c.pages, err = parsePages(); err != nil {
		return nil, fmt.Errorf("outbox: the console: %w", err)
	}
	c.life, c.end = context.WithCancel(context.Background())
	for _, given := range config.Outboxes {
		t := &shown{Outbox: given, about: given.Describe()}
		t.samples = newSampler(c.life, given.Overview)
		t.jobs, t.examining = &jobs{life: c.life}, make(chan struct{}, 1)
		c.outboxes = append(c.outboxes, t)
		c.byName[given.Name], c.byName[address(given.Name)] = t, t
	}
	c.mux = c.newMux()
	return c, nil
}

func (c *Config) validate() error {
	if len(c.Outboxes) == 0 {
		return errors.New("it has no Outboxes to show")
	}
	names := map[string]bool{}
	for i := range c.Outboxes {
		name := c.Outboxes[i].Name
		switch {
		case name == "":
			return errors.New("an outbox has no name")
		case names[name]:
			return fmt.Errorf("two outboxes are called %q", name)
		case c.Outboxes[i].Outbox == nil:
			return fmt.Errorf("the outbox %q is nil", name)
		}
		names[name] = true
	}
	if c.Prefix != "" && (!strings.HasPrefix(c.Prefix, "/") || strings.HasSuffix(c.Prefix, "/") || strings.ContainsAny(c.Prefix, "?#;\" ")) {
		return fmt.Errorf("the Prefix %q must be a path such as /outbox", c.Prefix)
	}
	return errors.Join(c.Doctor.Validate(), c.Access.Proxy.validate())
}

// Close interrupts running changes, each after its batch, and waits for them.
func (c *Console) Close() {
	c.end()
	for _, t := range c.outboxes {
		t.samples.wg.Wait()
		t.jobs.wg.Wait()
	}
}
