package pgstream

import (
	"errors"
	"fmt"
	"strings"
)

// maxSubscriptionName is the longest name of a subscription.
const maxSubscriptionName = 100

// ErrSubscriptionName matches every name that CheckSubscriptionName refuses.
var ErrSubscriptionName = errors.New("the subscription's name cannot be used")

// CheckSubscriptionName refuses a name that a new subscription cannot have. A name consists of ASCII letters, digits,
// '_', '-' and '.', begins with a letter or a digit, and has at most 100 characters: it reads the same in a URL, a
// command line and a log. Subscriptions that earlier programs made under other names are served as well.
func CheckSubscriptionName(name string) error {
	switch {
	case name == "":
		return fmt.Errorf("outbox: %w: it is empty", ErrSubscriptionName)
	case len(name) > maxSubscriptionName:
		return fmt.Errorf("outbox: %w: it has more than %d characters", ErrSubscriptionName, maxSubscriptionName)
	case !isAlphanumeric(rune(name[0])):
		return fmt.Errorf("outbox: %w: %q does not begin with a letter or a digit", ErrSubscriptionName, name)
	case strings.ContainsFunc(name, func(c rune) bool { return !isAlphanumeric(c) && c != '_' && c != '-' && c != '.' }):
		return fmt.Errorf("outbox: %w: %q has characters other than letters, digits, '_', '-' and '.'", ErrSubscriptionName, name)
	}
	return nil
}

func isAlphanumeric(c rune) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}
