// Package admin is the console: web pages for the person on call, and a JSON API beside them.
// It shows what waits, what is dead and why, and retries, replays, holds and releases events. It
// is an http.Handler for any Go server, and has a careful server of its own; see docs/console.md.
//
// It is safe by default: without credentials it answers only requests that come from
// this machine and are addressed to it.
package admin
