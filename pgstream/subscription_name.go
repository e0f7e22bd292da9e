package pgstream

import (
	"errors"
	"fmt"
)

// maxSubscriptionName is the longest name of a subscription.
const maxSubscriptionName = 100

// ErrSubscriptionName matches every name that CheckSubscriptionName refuses.
var ErrSubscriptionName = errors.New("the name of the subscription cannot be used")

// CheckSubscriptionName refuses a name that a new subscription cannot have. A name consists of
// ASCII letters, digits, '_', '-' and '.', begins with a letter or a digit, and has at most 100
// characters, so that it reads the same in a URL, a command line and a log. Subscriptions that
// earlier programs made under other names are served like any other.
func CheckSubscriptionName(name string) error {
	problem := ""
	switch {
	case name == "":
		problem = "is empty"
	case len(name) > maxSubscriptionName:
		problem = fmt.Sprintf("has more than %d characters", maxSubscriptionName)
	case !isAlphanumeric(name[0]):
		problem = fmt.Sprintf("%q does not begin with a letter or a digit", name)
	default:
		for i := range len(name) {
			if c := name[i]; !isAlphanumeric(c) && c != '_' && c != '-' && c != '.' {
				problem = fmt.Sprintf("%q has characters other than letters, digits, '_', '-' and '.'", name)
				break
			}
		}
	}
	if problem == "" {
		return nil
	}
	return &nameError{problem}
}

func isAlphanumeric(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}

// nameError says what is wrong with a name.
type nameError struct{ problem string }

func (e *nameError) Error() string        { return "outbox: the subscription's name " + e.problem }
func (e *nameError) Is(target error) bool { return target == ErrSubscriptionName }
