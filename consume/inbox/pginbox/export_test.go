package pginbox

// PurgeStatement is what a step of a purge runs, shown to the test of its plan.
func PurgeStatement(i *Inbox) string { return i.purge }
