// Package monorepo tests how the backend is deployed from the repository that it shares with the outbox: what Heroku looks for at
// the top of it. Whoever copies the backend into a repository of their own leaves this folder behind.
package monorepo
