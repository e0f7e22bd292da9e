package ops

// What errors come down to once ids and numbers are taken out of them.

// normalSQL is the beginning of an error, an SQL expression, without its ids and numbers.
func normalSQL(text string) string {
	return `btrim(regexp_replace(left(coalesce(` + text + `, ''), 300), ` +
		`'[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}|[0-9]+', '#', 'g'))`
}
