package admin

import (
	"encoding/json"
	"fmt"
	"html/template"
	"strconv"
	"strings"
	"time"

	"github.com/packfinderz/outbox/ops"
)

// words are the template functions that turn values into words.
var words = template.FuncMap{
	"ago":     func(at time.Time) string { return ago(time.Since(at)) },
	"clock":   func(at time.Time) string { return at.UTC().Format("2006-01-02 15:04:05 UTC") },
	"iso":     func(at time.Time) string { return at.UTC().Format(time.RFC3339Nano) },
	"number":  number,
	"count":   count,
	"counted": counted,
	"seconds": seconds,
	"subject": subject,
	"tail":    tail,
	"cut":     cut,
	"plural":  plural,
	"done":    func(operation ops.Operation) string { return pastOf[operation] },
	"doing":   func(operation ops.Operation) string { return presentOf[operation] },
	"int64":   func(n int) int64 { return int64(n) },
	"text":    func(raw json.RawMessage) string { return string(raw) },
}

var pastOf = map[ops.Operation]string{
	ops.OperationRetry: "retried", ops.OperationReplay: "replayed", ops.OperationHold: "held", ops.OperationRelease: "released",
	ops.OperationPurge: "purged",
}

var presentOf = map[ops.Operation]string{
	ops.OperationRetry: "Retrying", ops.OperationReplay: "Replaying", ops.OperationHold: "Holding", ops.OperationRelease: "Releasing",
	ops.OperationPurge: "Purging",
}

// number formats a number with separated thousands.
func number(n int64) string {
	digits := strconv.FormatInt(n, 10)
	var b strings.Builder
	for i, digit := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 && digits[i-1] != '-' {
			b.WriteByte(',')
		}
		b.WriteRune(digit)
	}
	return b.String()
}

// count formats a number that may be inexact: ~ is an estimate, + is at least.
func count(c ops.Count) string { return counted(c.N, c.AtLeast, c.Estimate) }

func counted(n int64, atLeast, estimate bool) string {
	text := number(n)
	if estimate {
		text = "~" + text
	}
	if atLeast {
		text += "+"
	}
	return text
}

// seconds formats a time in its two largest units.
func seconds(s float64) string {
	if s <= 0 {
		return "0 s"
	}
	if s < 10 {
		return fmt.Sprintf("%.1f s", s)
	}
	return wholeSeconds(int64(s))
}

func wholeSeconds(whole int64) string {
	for _, unit := range []struct {
		length      int64
		name, small string
		part        int64
	}{
		{86400, "d", "h", 3600},
		{3600, "h", "min", 60},
		{60, "min", "s", 1},
	} {
		if whole >= unit.length {
			text := fmt.Sprintf("%d %s", whole/unit.length, unit.name)
			if rest := whole % unit.length / unit.part; rest > 0 {
				text += fmt.Sprintf(" %d %s", rest, unit.small)
			}
			return text
		}
	}
	return fmt.Sprintf("%d s", whole)
}

// ago says how long ago something was, or how soon it comes.
func ago(past time.Duration) string {
	switch {
	case past < -time.Second:
		return "in " + wholeSeconds(int64(-past.Seconds()))
	case past < 2*time.Second:
		return "just now"
	}
	return wholeSeconds(int64(past.Seconds())) + " ago"
}

// subject returns what an event is about: its key, or its aggregate.
func subject(e ops.Event) string {
	switch {
	case e.Key != "":
		return e.Key
	case e.AggregateType != "" && e.AggregateID != "":
		return e.AggregateType + "/" + e.AggregateID
	}
	return e.AggregateType + e.AggregateID
}

// tail returns the end of an id, where ids made in one second differ.
func tail(id fmt.Stringer) string {
	text := id.String()
	return text[max(len(text)-12, 0):]
}

// cut shortens a text to so many characters.
func cut(n int, text string) string {
	for i := range text {
		if n--; n < 0 {
			return text[:i] + "…"
		}
	}
	return text
}

func plural(n int64, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return number(n) + " " + thing + "s"
}
