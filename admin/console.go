package admin

import (
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

// Config is what a console shows, and to whom.
type Config struct {
	// Targets are the outboxes it shows; at least one.
	Targets []Target
	// Prefix is the path under which the console is mounted, as browsers see it, such as
	// "/outbox". It may or may not be stripped from requests before. Default: none.
	Prefix string
	// Access says who may use it. Default: whoever is at this machine.
	Access Access
	// Logger is told who logs in, what is done, and what fails. Default slog.Default().
	Logger *slog.Logger
}

// Target is an outbox that the console shows.
type Target struct {
	// Name is what people and addresses call it.
	Name string
	// Operations is the outbox itself.
	Operations ops.Target
	// Publisher is where the events of a queue table are replayed to; without it they cannot be.
	// A stream's relay publishes them itself.
	Publisher outbox.Publisher
	// Examine is what the doctor says of it; without it there is no doctor's page.
	Examine func(context.Context) (doctor.Report, error)
	// DefaultTopic is the topic of replayed events that have none.
	DefaultTopic string
}

// Console is the web console and its JSON API. It is an http.Handler.
type Console struct {
	targets  []*target
	byName   map[string]*target
	prefix   string
	access   Access
	log      *slog.Logger
	key      []byte // signs the tokens of forms
	sessions *sessions
	logins   *limiter
	origins  *http.CrossOriginProtection
	pages    *pages
	mux      *http.ServeMux

	// All that runs beside requests ends with life.
	life context.Context
	end  context.CancelFunc
}

// target is a Target with what the console remembers of it.
type target struct {
	Target
	about   ops.Description
	samples *sampler
	jobs    *jobs
	// examining lets one person at a time call the doctor, who asks the database a lot.
	examining chan struct{}
}

// base is where a target's pages are.
func (c *Console) base(t *target) string { return c.prefix + "/t/" + address(t.Name) }

// address is a target's name as a part of an address. A name that a proxy, a browser or a mux would
// take for more than that, such as one with a slash, is written in hex.
func address(name string) string {
	if pgstream.CheckSubscriptionName(name) == nil {
		return name
	}
	return "~" + hex.EncodeToString([]byte(name))
}

// New makes a console. Close it in the end.
func New(config Config) (*Console, error) {
	if err := config.validate(); err != nil {
		return nil, fmt.Errorf("outbox: the console: %w", err)
	}
	c := &Console{
		byName: map[string]*target{}, prefix: config.Prefix, access: config.Access, log: config.Logger,
		key:      []byte(rand.Text()),
		sessions: &sessions{open: map[string]session{}, now: time.Now},
		logins:   &limiter{debt: map[string]time.Time{}, now: time.Now},
		origins:  http.NewCrossOriginProtection(),
	}
	if c.log == nil {
		c.log = slog.Default()
	}
	var err error
	if c.pages, err = parsePages(); err != nil {
		return nil, fmt.Errorf("outbox: the console: %w", err)
	}
	c.life, c.end = context.WithCancel(context.Background())
	for _, given := range config.Targets {
		t := &target{Target: given, about: given.Operations.Describe()}
		t.samples = newSampler(c.life, given.Operations.Overview)
		t.jobs, t.examining = newJobs(c.life), make(chan struct{}, 1)
		c.targets = append(c.targets, t)
		c.byName[given.Name], c.byName[address(given.Name)] = t, t
	}
	c.mux = c.newMux()
	return c, nil
}

func (c *Config) validate() error {
	if len(c.Targets) == 0 {
		return errors.New("it has no Targets to show")
	}
	names := map[string]bool{}
	for i := range c.Targets {
		name := c.Targets[i].Name
		switch {
		case name == "":
			return errors.New("a target has no name")
		case names[name]:
			return fmt.Errorf("two targets are called %q", name)
		case c.Targets[i].Operations == nil:
			return fmt.Errorf("the target %q has no Operations", name)
		}
		names[name] = true
	}
	if c.Prefix != "" && (!strings.HasPrefix(c.Prefix, "/") || strings.HasSuffix(c.Prefix, "/") || strings.ContainsAny(c.Prefix, "?#;\" ")) {
		return fmt.Errorf("the Prefix %q must be a path such as /outbox", c.Prefix)
	}
	return c.Access.Proxy.validate()
}

// Close interrupts what is under way for people, after a whole batch, and waits until it has ended.
func (c *Console) Close() {
	c.end()
	for _, t := range c.targets {
		t.samples.wait()
		t.jobs.wait()
	}
}
