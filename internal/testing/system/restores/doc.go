// Package restores takes streams from one server to another, by every way PostgreSQL has, and checks what the real
// outbox program makes of it there.
//
//   - TestRestores: dumps loaded elsewhere. The program refuses until outbox repair, whatever producers do meanwhile, and
//     delivers everything afterwards. It is a matrix of 72 cases: kinds of dump, servers, moments of the repair, and what
//     producers do. Every go test runs a spread of them, OUTBOX_CHAOS=long runs all.
//   - TestCopies: physical copies, which keep a server's history. Nothing is refused and nothing is lost.
//   - TestRewrites: what administrators do to tables. Nothing is refused.
package restores
