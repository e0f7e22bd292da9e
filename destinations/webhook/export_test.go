package webhook

// IsPublic is isPublic, for its table of addresses.
var IsPublic = isPublic
