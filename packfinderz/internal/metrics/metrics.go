// Package metrics writes metrics in Prometheus' text format. The programs have few, so they need no client library.
package metrics

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"
)

// askTime bounds the queries of one request.
const askTime = 5 * time.Second

// Writer collects the metrics of one answer.
type Writer struct{ buffer bytes.Buffer }

// Family begins a metric with its name, type and help.
func (w *Writer) Family(name, kind, help string) {
	fmt.Fprintf(&w.buffer, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
}

// Sample writes a value of a metric, with a label unless the label is empty.
func (w *Writer) Sample(name, label, value string, number float64) {
	if label != "" {
		name += fmt.Sprintf("{%s=%q}", label, value)
	}
	fmt.Fprintf(&w.buffer, "%s %s\n", name, strconv.FormatFloat(number, 'g', -1, 64))
}

// Single writes a metric with one value.
func (w *Writer) Single(name, kind, help string, number float64) {
	w.Family(name, kind, help)
	w.Sample(name, "", "", number)
}

// Handle answers GET /metrics. If a part fails the whole answer does: a missing number would look like a good one.
func Handle(mux *http.ServeMux, write func(ctx context.Context, w *Writer) error) {
	mux.HandleFunc("GET /metrics", func(response http.ResponseWriter, request *http.Request) {
		ctx, cancel := context.WithTimeout(request.Context(), askTime)
		defer cancel()
		w := &Writer{}
		if err := write(ctx, w); err != nil {
			http.Error(response, "the numbers cannot be read now", http.StatusServiceUnavailable)
			return
		}
		response.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		_, _ = response.Write(w.buffer.Bytes()) // the client may be gone
	})
}

// Counter counts by one label. The zero value is ready to use.
type Counter struct {
	mu     sync.Mutex
	counts map[string]float64
}

// Add adds to the count of a label.
func (c *Counter) Add(label string, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.counts == nil {
		c.counts = make(map[string]float64)
	}
	c.counts[label] += float64(n)
}

// Write writes the counter: the known labels in their order, even if zero, then all others.
func (c *Counter) Write(w *Writer, name, help, label string, known ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w.Family(name, "counter", help)
	isKnown := func(value string) bool { return slices.Contains(known, value) }
	others := slices.DeleteFunc(slices.Sorted(maps.Keys(c.counts)), isKnown)
	for _, value := range slices.Concat(known, others) {
		w.Sample(name, label, value, c.counts[value])
	}
}

// bounds are the upper bounds of the buckets of a Latency, in seconds.
func bounds() [12]float64 { return [...]float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 20} }

// Latency is a histogram of times. The zero value is ready to use.
type Latency struct {
	mu      sync.Mutex
	buckets [12]float64 // one for each of the bounds
	count   float64
	sum     float64
}

// Observe counts a time.
func (l *Latency) Observe(took time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, bound := range bounds() {
		if took.Seconds() <= bound {
			l.buckets[i]++
		}
	}
	l.count++
	l.sum += took.Seconds()
}

// Write writes the histogram.
func (l *Latency) Write(w *Writer, name, help string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	w.Family(name, "histogram", help)
	for i, bound := range bounds() {
		w.Sample(name+"_bucket", "le", strconv.FormatFloat(bound, 'g', -1, 64), l.buckets[i])
	}
	w.Sample(name+"_bucket", "le", "+Inf", l.count)
	w.Sample(name+"_sum", "", "", l.sum)
	w.Sample(name+"_count", "", "", l.count)
}
