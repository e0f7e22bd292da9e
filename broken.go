package outbox

import (
	"errors"
	"fmt"
	"reflect"
)

// A publisher's errors may be broken: a nil pointer in an error, or methods that panic. The relay
// looks at them outside of the publisher's call, where a panic would end the process.

// isNilPointer reports whether an error is a pointer to nothing: the publisher returned a nil of its
// own type, and did not say whether the message got through.
func isNilPointer(err error) bool {
	value := reflect.ValueOf(err)
	return value.Kind() == reflect.Pointer && value.IsNil()
}

// textOf is an error's own text, or what is wrong with the error.
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

// find is the first error of a type among those that err wraps; nil for none.
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
