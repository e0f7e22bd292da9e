package chaos

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
)

// TestCheckerFails gives the checker histories in which something went wrong: a checker that cannot fail proves nothing.
func TestCheckerFails(t *testing.T) {
	t.Parallel()
	a, b, c, stranger := uuid.New(), uuid.New(), uuid.New(), uuid.New()
	killed, later := &Incarnation{Name: "a.1", Fault: 1}, &Incarnation{Name: "b.1", Fault: 2}
	lesser := &Incarnation{Name: "c.1", Fault: 3}
	start := time.Now()
	healthy, other := &Incarnation{Name: "a.2"}, &Incarnation{Name: "b.2"}
	for name, test := range map[string]struct {
		deliveries []Delivery
		spoiled    []string
		want       []string // a part of each problem; none means a good history
		twice      int
		perFault   map[int]int
	}{
		"every event once": {
			deliveries: []Delivery{{ID: a, By: killed}, {ID: b, By: healthy}, {ID: c, By: other}},
		},
		"one lost": {
			deliveries: []Delivery{{ID: a, By: killed}, {ID: b, By: healthy}},
			want:       []string{"1 of 3 committed events never arrived, such as " + c.String()},
		},
		"one lost in half a line": {
			deliveries: []Delivery{{ID: a, By: killed}, {ID: b, By: healthy}},
			spoiled:    []string{`{"id":"01`},
			want:       []string{"never arrived", `may be in {"id":"01`},
		},
		"all lost": {
			want: []string{"3 of 3 committed events never arrived"},
		},
		"one that was rolled back": {
			deliveries: []Delivery{{ID: a, By: killed}, {ID: b, By: healthy}, {ID: c, By: other}, {ID: stranger, By: healthy}},
			want:       []string{"1 events arrived that were never committed, such as " + stranger.String()},
		},
		"twice, after a kill": {
			deliveries: []Delivery{{ID: a, By: killed}, {ID: b, By: healthy}, {ID: c, By: other}, {ID: a, By: healthy}},
			twice:      1, perFault: map[int]int{1: 1},
		},
		"twice, and no relay died": {
			deliveries: []Delivery{{ID: a, By: other}, {ID: b, By: healthy}, {ID: c, By: other}, {ID: a, By: healthy}},
			want:       []string{"1 surplus deliveries are due to no fault, such as " + a.String() + " by b.2, a.2"},
			twice:      1,
		},
		"twice by one relay that did not die": {
			deliveries: []Delivery{{ID: a, By: healthy}, {ID: b, By: healthy}, {ID: c, By: other}, {ID: a, By: healthy}},
			want:       []string{"due to no fault"},
			twice:      1,
		},
		"twice by one relay that met a fault": {
			deliveries: []Delivery{{ID: a, By: killed}, {ID: a, By: killed}, {ID: b, By: healthy}, {ID: c, By: other}},
			twice:      1, perFault: map[int]int{1: 1},
		},
		"three times, each killed after the other": {
			deliveries: []Delivery{{ID: a, By: later}, {ID: a, By: killed}, {ID: a, By: other}, {ID: b, By: healthy}, {ID: c, By: other}},
			twice:      1, perFault: map[int]int{1: 1, 2: 1},
		},
		"twice by two that were killed: the first is at fault": {
			deliveries: []Delivery{{ID: a, By: later}, {ID: a, By: killed}, {ID: b, By: healthy}, {ID: c, By: other}},
			twice:      1, perFault: map[int]int{1: 1},
		},
		"a kill, and a duplicate that it does not excuse": {
			deliveries: []Delivery{{ID: a, By: killed}, {ID: a, By: other}, {ID: a, By: healthy}, {ID: b, By: healthy}, {ID: c, By: other}},
			want:       []string{"due to no fault"},
			twice:      1, perFault: map[int]int{1: 1},
		},
		"more than was in flight": {
			deliveries: []Delivery{{ID: a, By: killed}, {ID: b, By: killed}, {ID: c, By: killed}, {ID: a, By: other}, {ID: b, By: other}, {ID: c, By: healthy}},
			want:       []string{"fault 1 made 3 surplus deliveries; at most 2 were in flight"},
			twice:      3, perFault: map[int]int{1: 3},
		},
		"a kill that could do less than others": {
			deliveries: []Delivery{{ID: a, By: lesser}, {ID: b, By: healthy}, {ID: c, By: other}, {ID: a, By: healthy}},
			want:       []string{"fault 3 made 1 surplus deliveries; at most 0 were in flight"},
			twice:      1, perFault: map[int]int{3: 1},
		},
		"in order": {
			deliveries: []Delivery{
				{ID: a, By: healthy, Key: "k", Version: 1}, {ID: b, By: other, Key: "k", Version: 2}, {ID: c, By: other, Key: "l", Version: 1},
			},
		},
		"in order at first, and again after a kill": {
			deliveries: []Delivery{
				{ID: a, By: killed, Key: "k", Version: 1}, {ID: b, By: killed, Key: "k", Version: 2},
				{ID: a, By: other, Key: "k", Version: 1}, {ID: b, By: other, Key: "k", Version: 2}, {ID: c, By: other, Key: "k", Version: 3},
			},
			twice: 2, perFault: map[int]int{1: 2},
		},
		"out of order": {
			deliveries: []Delivery{
				{ID: b, By: healthy, Key: "k", Version: 2}, {ID: a, By: other, Key: "k", Version: 1}, {ID: c, By: other, Key: "k", Version: 3},
			},
			want: []string{"1 events came after a later one of their key, such as k: version 1 by b.2 after version 2 by a.2"},
		},
		"half a line is what a kill may leave": {
			deliveries: []Delivery{{ID: a, By: killed}, {ID: b, By: healthy}, {ID: c, By: other}},
			spoiled:    []string{`{"id":"01`},
		},
		"two spoiled lines": {
			deliveries: []Delivery{{ID: a, By: killed}, {ID: b, By: healthy}, {ID: c, By: other}},
			spoiled:    []string{`{"id":"01`, `{"id":"02`},
			want:       []string{"2 lines cannot be read"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			history := History{
				Committed:  map[uuid.UUID]time.Time{a: start, b: start, c: start},
				Deliveries: test.deliveries, Spoiled: test.spoiled,
			}
			report := history.Judge()
			problems := report.Problems(Limits{PerFault: 2, ByFault: map[int]int{3: 0}, Spoiled: 1})
			if len(problems) != len(test.want) {
				t.Fatalf("problems: %q, want %d", problems, len(test.want))
			}
			for i, want := range test.want {
				if !strings.Contains(problems[i], want) {
					t.Errorf("problem %q does not say %q", problems[i], want)
				}
			}
			if report.Twice != test.twice || len(report.PerFault) != len(test.perFault) {
				t.Errorf("twice %d, per fault %v; want %d, %v", report.Twice, report.PerFault, test.twice, test.perFault)
			}
			for fault, want := range test.perFault {
				if report.PerFault[fault] != want {
					t.Errorf("fault %d made %d surplus deliveries, want %d", fault, report.PerFault[fault], want)
				}
			}
		})
	}
}

// TestLag measures from the commit to the first arrival.
func TestLag(t *testing.T) {
	t.Parallel()
	id, commit := uuid.New(), time.Now()
	history := History{
		Committed: map[uuid.UUID]time.Time{id: commit},
		Deliveries: []Delivery{
			{ID: id, By: &Incarnation{Fault: 1}, At: commit.Add(time.Second)},
			{ID: id, By: &Incarnation{}, At: commit.Add(time.Minute)},
		},
	}
	if lag := history.Judge().MaxLag; lag != time.Second {
		t.Errorf("the lag is %s, want 1s", lag)
	}
}
