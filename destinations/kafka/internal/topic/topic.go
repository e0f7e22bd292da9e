// Package topic knows the names that topics can have.
package topic

import (
	"fmt"
	"regexp"
)

var legal = regexp.MustCompile(`^[A-Za-z0-9._-]{1,249}$`)

// Check rejects a name that no topic can have.
func Check(name string) error {
	if !legal.MatchString(name) || name == "." || name == ".." {
		return fmt.Errorf("topic %.100q cannot be one of Kafka's: up to 249 letters, digits, dots, hyphens and underscores", name)
	}
	return nil
}
