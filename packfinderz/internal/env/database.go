package env

import (
	"net/url"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"
)

// DatabaseVariable is the address of PostgreSQL.
const DatabaseVariable = "PACKFINDERZ_DATABASE_URL"

// Database reads the address of PostgreSQL from the program's own variables, DatabaseVariable, or Heroku's DATABASE_URL.
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

// parseProblem says what is wrong with an address without repeating it: an unescaped password may be anywhere in it.
// It says nothing about an address that is no URL at all.
func parseProblem(value string, err error) string {
	const end = "`: " // of the address, which the error repeats
	text := err.Error()
	at := strings.LastIndex(text, end)
	if _, unclear := url.Parse(value); unclear != nil || at < 0 {
		return ""
	}
	return " (" + text[at+len(end):] + ")"
}
