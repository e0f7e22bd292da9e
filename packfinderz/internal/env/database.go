package env

import (
	"net/url"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"
)

// DatabaseVariable is the address of PostgreSQL.
const DatabaseVariable = "PACKFINDERZ_DATABASE_URL"

// Database is the address of PostgreSQL: that of a program's own variables, or that of DatabaseVariable, or DATABASE_URL, which Heroku
// sets.
func (r *Reader) Database(own ...string) string {
	name, value := r.First(append(own, DatabaseVariable, "DATABASE_URL")...)
	if value == "" {
		r.Refuse(DatabaseVariable, "is not set")
		return ""
	}
	if _, err := pgxpool.ParseConfig(value); err != nil {
		r.Refuse(name, "is no address of PostgreSQL%s: it must look like postgres://user:password@host:5432/database?sslmode=require, "+
			"with special characters written as %%XX", parseProblem(value, err))
	}
	return value
}

// parseProblem is what is wrong with an address, without the address: a password that is not escaped may be anywhere in it. Where it
// is no URL at all, nobody knows what is the password, and nothing is repeated.
func parseProblem(value string, err error) string {
	const end = "`: " // of the address, which the error repeats
	text := err.Error()
	at := strings.LastIndex(text, end)
	if _, unclear := url.Parse(value); unclear != nil || at < 0 {
		return ""
	}
	return " (" + text[at+len(end):] + ")"
}
