package ops

import (
	"regexp"
	"strings"
)

// What errors come down to once ids and numbers are taken out of them, in SQL and here alike.

const (
	// variable is what differs between errors of one kind.
	variable = `[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}|[0-9]+`
	// normalLength is how many characters of an error count.
	normalLength = 300
)

var variables = regexp.MustCompile(variable)

// normal is the beginning of an error without its ids and numbers.
func normal(text string) string {
	runes := []rune(text)
	return strings.Trim(variables.ReplaceAllString(string(runes[:min(len(runes), normalLength)]), "#"), " ")
}

// normalSQL is the same of an SQL expression.
func normalSQL(text string) string {
	return `btrim(regexp_replace(left(coalesce(` + text + `, ''), 300), '` + variable + `', '#', 'g'))`
}
