# The two commands that matter: make demo, make test. make help lists the rest.

MODULES := . bench cmd/outbox consume/inbox/redisinbox destinations/gcppubsub destinations/gocloud destinations/kafka destinations/natsjs destinations/rabbitmq destinations/redis examples internal/release internal/testing/system layouts/layoutfile outboxgorm packfinderz
PACKAGES := $(patsubst %,./%/...,$(filter-out .,$(MODULES)))
BROKERS := $(filter ./destinations/%,$(PACKAGES))
OTHERS := ./... $(filter-out $(BROKERS),$(PACKAGES))
# It runs all tests of packfinderz once more, in another module: by itself, so that they do not run at the same time.
COPIED := internal/testing/copied
# Tests of brokers wait most of the time.
WAITING := -parallel 8
GOLANGCI_VERSION := v2.13.0
GOLANGCI := .tools/golangci-lint-$(GOLANGCI_VERSION)
# Inputs, not seconds: a fuzzer that is stopped by the clock may report that as a failure.
FUZZ ?= 20000x
# Which faults make mutants tries.
MUTANTS ?= *
# The commit of the version before this one: its program has to work beside today's, on today's tables. A release sets it
# to the commit of the release before. scripts/ensure-previous reads it here.
PREVIOUS := 507ff51de441f28c100afd409fcd8c0c56e2795b
# Which versions of PostgreSQL make matrix tests on, and what it tests: emit stores stream ops chaos, or some of these.
VERSIONS ?= 14 15 16 17 18
AREAS ?=
# Which tests of these, as of go test; all where it is empty.
RUN ?=

.DEFAULT_GOAL := help
.PHONY: help demo django run-outbox-publisher build test test-busy mutants race chaos matrix fuzz lint fmt bench screenshot modules install-check release postgres django-packages servers

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-20s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: postgres ## a shop, a relay, a broker, a consumer and the console, on private servers; Ctrl-C ends it
	GOWORK=$(CURDIR)/examples/demo/demo.work CGO_ENABLED=0 go build -gcflags=all=-dwarf=false -ldflags=-w -o bin/outbox-demo ./examples/demo
	bin/outbox-demo

django: postgres django-packages ## a Django project with an outbox, on a private PostgreSQL; Ctrl-C ends it
	go run ./examples/django

run-outbox-publisher: postgres ## run the PackFinderz publisher, on private servers where the environment names none
	@$(MAKE) --no-print-directory -C packfinderz run-outbox-publisher

build: ## build the outbox program into bin/
	@start=$$(date +%s); go build -o bin/outbox ./cmd/outbox && \
		echo "bin/outbox: $$(($$(wc -c <bin/outbox) / 1000000)) MB, built in $$(($$(date +%s) - start)) s"

# A package may take longer than the usual ten minutes where the disk is slow: every test makes a database.
LIMIT := -timeout 30m
test: servers ## run all tests of all modules, on private servers
	go test -p 4 $(LIMIT) $(TESTFLAGS) $$(go list $(OTHERS) | grep -v $(COPIED))
	go test -p 4 $(LIMIT) $(TESTFLAGS) $(WAITING) $(BROKERS)
	go test $(LIMIT) $(TESTFLAGS) ./$(COPIED)

test-busy: servers ## run all tests while every core is busy otherwise: none may depend on speed
	scripts/busy $(MAKE) --no-print-directory test TESTFLAGS=-count=1

mutants: servers ## put known faults into a copy, one by one, and see a test notice each; MUTANTS='relay-*' for some
	go build -o bin/mutants ./internal/testing/mutants
	bin/mutants '$(MUTANTS)'

# The detector sees nothing in tests of processes, which run the program as it is shipped; in query plans,
# which run in the server; in tests that put faults into SQL, or take one random step after the other; nor in
# packages that start no goroutine and hold no lock. The console has tests of its own beside those in a
# browser, and nobody ships bench.
UNRACED := bench internal/testing/system ops/doctor internal/testing/copied internal/testing/mutants \
	examples/django layouts/layoutfile outboxgorm outboxsql packfinderz/internal/e2e
race: servers ## run the tests with the race detector, but for those that it cannot see into
	go test -race -p 4 $(LIMIT) -skip '^Test(Plan|Fault|Model$$|States$$)' $$(go list $(OTHERS) | grep -v $(patsubst %,-e outbox/%,$(UNRACED)))
	go test -race $(LIMIT) $(WAITING) $(BROKERS)

chaos: servers ## kill, stop and restart relays, consumers, PostgreSQL and destinations under load, the long form
	OUTBOX_CHAOS=long go test -count=1 -v -timeout 60m ./internal/testing/system/chaos
	OUTBOX_CHAOS=long go test -count=1 -v -timeout 60m ./internal/testing/system/restores
	OUTBOX_CHAOS=long go test -count=1 -v -run AtRandom ./consume/inbox/pginbox
	OUTBOX_CHAOS=long go test -count=1 -v -timeout 60m -run 'ConsumeOnce|Hung' ./internal/testing/system/endtoend
	OUTBOX_CHAOS=long go test -count=1 -v -run 'AtRandom|ConsumeKilled' ./consume/inbox/redisinbox ./destinations/redis/...
	OUTBOX_CHAOS=long go test -count=1 -v -timeout 60m -run 'TestChaos' ./packfinderz/internal/e2e
	OUTBOX_CHAOS=long go test -count=1 -v -p 2 -parallel 16 -timeout 2h -run 'TestOutages' ./internal/testing/outagetest ./destinations/webhook ./destinations/file $(BROKERS)

matrix: postgres ## test emit, stores, stream, ops and the short chaos on PostgreSQL 14 to 18; VERSIONS=18, AREAS='stream ops' for some
	go build -o bin/matrix ./internal/testing/matrix
	bin/matrix -areas '$(AREAS)' -run '$(RUN)' $(VERSIONS)

fuzz: postgres ## run each fuzz target on FUZZ inputs, or for a time (20000x)
	go test -run '^$$' -fuzz FuzzCheck -fuzztime $(FUZZ) -fuzzminimizetime 100x ./internal/jsoncheck
	go test -run '^$$' -fuzz FuzzIdentifier -fuzztime $(FUZZ) -fuzzminimizetime 100x ./pgstore
	go test -run '^$$' -fuzz FuzzParse -fuzztime $(FUZZ) -fuzzminimizetime 100x ./layouts/layoutfile
	go test -run '^$$' -fuzz FuzzColour -fuzztime $(FUZZ) -fuzzminimizetime 100x ./admin

bench: servers ## measure, beside the same work done by hand; takes most of an hour
	go run ./bench

screenshot: servers ## take the README's picture of the console again
	OUTBOX_SCREENSHOTS=$(CURDIR)/docs/images go test -count=1 -run TestConsole/a_picture ./internal/testing/system/browser

lint: $(GOLANGCI) ## check formatting and run the linters on every module, all at once: what they share is read once
	$(GOLANGCI) run ./... $(PACKAGES)
	PYTHONPYCACHEPREFIX=.tools/pycache python3 -m compileall -q examples/django

fmt: $(GOLANGCI) ## format the code of every module
	@for module in $(MODULES); do (cd $$module && $(CURDIR)/$(GOLANGCI) fmt --config $(CURDIR)/.golangci.yml ./...) || exit 1; done

modules: ## build and vet every module by itself, without the workspace
	@for module in $(MODULES); do \
		echo "build $$module"; \
		scripts/alone $$module build -o /dev/null ./... && scripts/alone $$module vet ./... && scripts/alone $$module mod tidy -diff || exit 1; \
	done

install-check: postgres ## install the program and build a stranger's module from module zips of this tree, with no workspace
	go run ./internal/release check

release: ## name a new version in every module and in the changelog, and say how to tag it; VERSION=v0.2.0
	@go run ./internal/release prepare '$(VERSION)'

postgres:
	@scripts/ensure-postgres

django-packages:
	@scripts/ensure-django

# All servers that the tests start, and Django.
servers: postgres django-packages
	@scripts/ensure-redis
	@scripts/ensure-rabbitmq
	@scripts/ensure-pgbouncer
	@scripts/ensure-chromium

$(GOLANGCI):
	@mkdir -p .tools
	GOBIN=$(CURDIR)/.tools GOWORK=off go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION)
	@mv .tools/golangci-lint $@
