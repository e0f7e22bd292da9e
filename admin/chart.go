package admin

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// The chart's own units; the page stretches it.
const (
	chartWidth  = 600
	chartHeight = 120
	// chartGap is how far apart two samples may be and still be joined. Beyond that, nobody looked in between.
	chartGap = 5 * sampleEvery
)

// chart is a line over the last minutes. The server draws it, so it needs no script.
type chart struct {
	// Line and Area are paths.
	Line, Area string
	// Top is the value at the upper edge.
	Top float64
	// Empty is set where there is nothing to draw.
	Empty bool
	// Span is how far back it goes.
	Span time.Duration
}

// newChart draws a value of the samples; it leaves out negative ones.
func newChart(samples []sample, end time.Time, value func(sample) float64) chart {
	c := chart{Empty: true, Span: time.Minute}
	if len(samples) > 0 {
		c.Span = min(max(end.Sub(samples[0].At), time.Minute), sampleWindow)
	}
	for _, s := range samples {
		c.Top = max(c.Top, value(s))
	}
	c.Top = niceTop(c.Top)
	var line, area strings.Builder
	var first float64
	var before time.Time
	closeArea := func() {
		if !c.Empty {
			fmt.Fprintf(&area, "V%d H%.1f Z", chartHeight, first)
		}
	}
	for _, s := range samples {
		v := value(s)
		x := chartWidth * (1 - float64(end.Sub(s.At))/float64(c.Span))
		if v < 0 || x < 0 {
			continue
		}
		// Leave two units above and below, so that the edges do not cut the line in half.
		y := 2 + (chartHeight-4)*(1-v/c.Top)
		if c.Empty || s.At.Sub(before) > chartGap {
			closeArea()
			fmt.Fprintf(&line, "M%.1f %.1f", x, y)
			fmt.Fprintf(&area, "M%.1f %d L%.1f %.1f", x, chartHeight, x, y)
			first = x
		} else {
			fmt.Fprintf(&line, "L%.1f %.1f", x, y)
			fmt.Fprintf(&area, "L%.1f %.1f", x, y)
		}
		c.Empty, before = false, s.At
	}
	closeArea()
	c.Line, c.Area = line.String(), area.String()
	return c
}

// niceTop returns the next higher number that begins with 1, 2 or 5.
func niceTop(v float64) float64 {
	if v <= 1 {
		return 1
	}
	unit := math.Pow(10, math.Floor(math.Log10(v)))
	for _, factor := range []float64{1, 2, 5} {
		if v <= factor*unit {
			return factor * unit
		}
	}
	return 10 * unit
}
