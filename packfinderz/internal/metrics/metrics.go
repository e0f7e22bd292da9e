// Package metrics writes numbers in Prometheus' text format. The programs have few of them, and need no client library for it.
package metrics

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"
)

// askTime bounds the questions of one request.
const askTime = 5 * time.Second

// Writer collects the metrics of one answer.
type Writer struct{ buffer bytes.Buffer }

// Family begins a metric: what it is called, its type, and what it says.
func (w *Writer) Family(name, kind, help string) {
	fmt.Fprintf(&w.buffer, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
}

// Sample writes a value of a metric, with one label unless its name is empty.
func (w *Writer) Sample(name, label, value string, number float64) {
	if label != "" {
		name += fmt.Sprintf("{%s=%q}", label, value)
	}
	fmt.Fprintf(&w.buffer, "%s %s\n", name, strconv.FormatFloat(number, 'g', -1, 64))
}

// Single writes a metric that has one value.
func (w *Writer) Single(name, kind, help string, number float64) {
	w.Family(name, kind, help)
	w.Sample(name, "", "", number)
}

// Handle answers GET /metrics. An answer that cannot be given whole is none: a number that is missing would
// look like one that is fine.
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

// Counter counts by one label. Its zero value counts from zero.
type Counter struct {
	mu     sync.Mutex
	counts map[string]float64
}

// Add counts.
func (c *Counter) Add(label string, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.counts == nil {
		c.counts = make(map[string]float64)
	}
	c.counts[label] += float64(n)
}

// Write writes the counter: the known labels in their order, counted or not, and then all others.
func (c *Counter) Write(w *Writer, name, help, label string, known ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w.Family(name, "counter", help)
	others := make([]string, 0, len(c.counts))
	for value := range c.counts {
		if !slices.Contains(known, value) {
			others = append(others, value)
		}
	}
	slices.Sort(others)
	for _, value := range append(slices.Clone(known), others...) {
		w.Sample(name, label, value, c.counts[value])
	}
}

// bounds are the upper bounds of the buckets of a Latency, in seconds: what a broker, or a database, takes.
func bounds() []float64 { return []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 20} }

// Latency is a histogram of times. Its zero value is empty.
type Latency struct {
	mu      sync.Mutex
	buckets []float64
	count   float64
	sum     float64
}

// Observe counts a time.
func (l *Latency) Observe(took time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.buckets == nil {
		l.buckets = make([]float64, len(bounds()))
	}
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
		var n float64
		if l.buckets != nil {
			n = l.buckets[i]
		}
		w.Sample(name+"_bucket", "le", strconv.FormatFloat(bound, 'g', -1, 64), n)
	}
	w.Sample(name+"_bucket", "le", "+Inf", l.count)
	w.Sample(name+"_sum", "", "", l.sum)
	w.Sample(name+"_count", "", "", l.count)
}
