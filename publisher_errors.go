package outbox

import (
	"errors"
	"fmt"
)

// A publisher's errors may be broken: a nil pointer as an error, or methods that panic. The relay inspects errors
// outside the publisher's call, where a panic would end the process.

// isNilPointer reports whether an error is a nil pointer. A publisher that returns one has not said whether the
// message got through.
func isNilPointer(err error) bool {
	return err != nil && isNil(err)
}

// textOf returns the error's text, or describes a broken error.
func textOf(err error) (text string) {
	defer func() {
		if value := recover(); value != nil {
			text = fmt.Sprintf("the publisher's error of type %T panics: %v", err, value)
		}
	}()
	if isNilPointer(err) {
		return fmt.Sprintf("the publisher answered with a nil pointer of type %T, which is an error and not nil; return nil for success", err)
	}
	return err.Error()
}

// find returns the first error of a type among those that err wraps; nil for none.
func find[T interface {
	comparable
	error
}](err error) (found T) {
	defer func() {
		if recover() != nil {
			var none T
			found = none
		}
	}()
	errors.As(err, &found)
	return found
}
