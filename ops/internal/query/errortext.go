package query

import (
	"regexp"
	"strings"
)

// Errors are compared without their ids and numbers, in SQL and here alike.

const (
	// variable matches what differs between errors of one kind.
	variable = `[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}|[0-9]+`
	// normalLength is the number of characters of an error that are compared.
	normalLength = 300
)

var variables = regexp.MustCompile(variable)

// Normal is the beginning of an error, with its ids and numbers replaced by "#".
func Normal(text string) string {
	runes := []rune(text)
	return strings.Trim(variables.ReplaceAllString(string(runes[:min(len(runes), normalLength)]), "#"), " ")
}

// NormalSQL is the same for an SQL expression.
func NormalSQL(text string) string {
	return `btrim(regexp_replace(left(coalesce(` + text + `, ''), 300), '` + variable + `', '#', 'g'))`
}
