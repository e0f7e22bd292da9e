package doctor

import (
	"fmt"
	"regexp"
	"strings"
	"time"
)

// span formats a time for people, no more exact than they need.
func span(d time.Duration) string {
	switch {
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return d.Round(100 * time.Millisecond).String()
	case d < 48*time.Hour:
		return short(d.Round(time.Second))
	}
	return fmt.Sprintf("%d days", int(d/(24*time.Hour)))
}

// short formats a duration for flags, without zero minutes and seconds.
func short(d time.Duration) string {
	text := d.String()
	for _, unit := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, unit) {
			text = strings.TrimSuffix(text, unit[1:])
		}
	}
	return text
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// count returns a number with the word for one or for many.
func count(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

func plural(n int64, thing string) string { return count(n, thing, thing+"s") }

// plain words need no quotes in a shell.
var plain = regexp.MustCompile(`^[\w./:-]+$`)

func shell(word string) string {
	if plain.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
