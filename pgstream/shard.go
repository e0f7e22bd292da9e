package pgstream

import (
	"slices"
	"strconv"
	"strings"

	"github.com/packfinderz/outbox"
)

// cursor is where a subscription stands in one shard. Between windows s2 is empty.
type cursor struct {
	s1     string
	q1     int64
	s2     string
	q2     int64
	hi     int64
	pos    int64
	parked int64 // the count of changes that others made to the parked events
	// The xids of the statements that read q1, q2 and hi from the sequence: every transaction with a seq up to those
	// has a lower one. Zero if not known; the table does not have them.
	q1xid, q2xid, hixid uint64
}

// mayBeLate reports whether the next window may have a late part: events up to q1 of transactions that ran at s1.
func (c *cursor) mayBeLate() bool {
	return hasRunning(c.s1) && (c.q1xid == 0 || firstRunning(c.s1) < c.q1xid)
}

// opened begins a window.
func (c *cursor) opened(w window) {
	c.s2, c.q2, c.q2xid = w.s2, w.q2, c.hixid
	c.hi, c.hixid, c.pos = w.hi, w.xid, 0
}

// closed ends it.
func (c *cursor) closed() {
	c.s1, c.q1, c.q1xid = c.s2, c.q2, c.q2xid
	c.s2, c.q2, c.q2xid, c.pos = "", 0, 0, 0
}

// shard is a shard this store has, and what it knows of it.
type shard struct {
	number int16
	fence  int64
	// known is set while cursor is what the table says.
	known  bool
	cursor cursor
	// checked is the xid up to which nothing breaks the cursor's mark. That of a later window is higher.
	checked uint64
	// pages have been read; the first may be out.
	pages []*page
	out   bool
	// read is how far the window has been read; ended is set when all of it has been.
	read  int64
	ended bool
	// full counts the full pages of this window; wide is set when the next one may be long.
	full int
	wide bool
	// gated are the keys whose events wait; stale is set when they must be read again.
	gated map[string]struct{}
	stale bool
	// missed is set when a window was wanted while a page was out.
	missed bool
	// leaving is set when the shard is to be given to another relay.
	leaving bool
	// behind is the closed topic that the shard waits for, because no more of its events can be parked.
	behind string
}

// place is where in the stream an event is.
type place struct {
	slot    int16
	seq     int64
	delayed bool // its not_before is still to come
}

// page is a piece of a window that is settled at once.
type page struct {
	part string
	// messages and places are its events, in the order of their seqs.
	messages []outbox.Message
	places   []place
	// delayed is set when one of them is.
	delayed bool
	// to is the position when it has been settled; closes is set when that ends the window.
	to     int64
	closes bool
	// full is set when there may be more behind it.
	full bool
}

// last is the seq of the page's last event.
func (p *page) last() int64 { return p.places[len(p.places)-1].seq }

// The parts of a window.
const (
	partLate = "late"
	partMain = "main"
)

// load sets the cursor to what the table says.
func (sh *shard) load(c cursor) {
	sh.cursor, sh.known, sh.checked = c, true, 0
	sh.pages, sh.behind = nil, ""
	sh.wide = true
	sh.begin()
}

// begin sets the reading position to the start of what is left of the window.
func (sh *shard) begin() {
	sh.read, sh.ended = sh.cursor.pos, sh.cursor.s2 == ""
	if sh.cursor.pos < sh.cursor.q1 && !sh.cursor.mayBeLate() {
		sh.read = sh.cursor.q1
	}
}

// forget makes the cursor unknown. A page that is out may still be settled.
func (sh *shard) forget() {
	sh.known, sh.stale = false, true
	if sh.out {
		sh.pages = sh.pages[:1]
	} else {
		sh.pages = nil
	}
}

// ready reports whether the first page can be handed out.
func (sh *shard) ready() bool {
	return sh.known && !sh.stale && !sh.out && !sh.leaving && sh.behind == "" && len(sh.pages) > 0
}

// split makes two pages of the first if it has more than n events: it was read for a larger batch.
func (sh *shard) split(n int) {
	first := sh.pages[0]
	if len(first.places) <= n {
		return
	}
	rest := *first
	rest.messages, rest.places = first.messages[n:], first.places[n:]
	first.messages, first.places = first.messages[:n:n], first.places[:n:n]
	first.to, first.closes, first.full = first.last(), false, true
	sh.pages = slices.Insert(sh.pages, 1, &rest)
}

// hasRunning reports whether a snapshot, xmin:xmax:xip,…, lists running transactions.
func hasRunning(snapshot string) bool {
	return snapshot != "" && snapshot[len(snapshot)-1] != ':'
}

// firstRunning is the lowest xid that a snapshot lists as running: its xmin.
func firstRunning(snapshot string) uint64 {
	xmin, _, _ := strings.Cut(snapshot, ":")
	return parseXid(xmin)
}

// nextXid is the xid from which on a snapshot knows of no transaction: its xmax.
func nextXid(snapshot string) uint64 {
	_, rest, _ := strings.Cut(snapshot, ":")
	xmax, _, _ := strings.Cut(rest, ":")
	return parseXid(xmax)
}

func parseXid(text string) uint64 {
	xid, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0 // which is lower than any
	}
	return xid
}
