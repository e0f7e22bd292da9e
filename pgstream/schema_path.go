package pgstream

import "fmt"

// misled is a function that looks for its tables in another schema than its own: the schema was renamed, or a dump was loaded
// under another name, and what it emits goes elsewhere.
func misled(function object) difference {
	return difference{0, Difference{
		Object: "function " + function.name, Problem: "looks for its tables in another schema; was this one renamed?",
		Mend: fmt.Sprintf("put it right with: ALTER FUNCTION %s SET search_path TO %s, pg_temp;", function.name, function.detail),
	}}
}
