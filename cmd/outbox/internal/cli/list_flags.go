package cli

import (
	"errors"
	"strings"

	"github.com/spf13/pflag"
)

// listValue is a repeatable flag. It takes each value as it is: topics and names may have commas and quotes, at
// which pflag's own lists would split. In the environment each line is a value.
type listValue struct{ values *[]string }

func listFlag(f *pflag.FlagSet, values *[]string, name, usage string) {
	f.Var(listValue{values}, name, usage)
}

func (l listValue) Set(value string) error {
	if value == "" {
		return errors.New("it is empty")
	}
	*l.values = append(*l.values, value)
	return nil
}

func (l listValue) String() string {
	if l.values == nil {
		return ""
	}
	return strings.Join(*l.values, " ")
}

func (listValue) Type() string { return "string" }
