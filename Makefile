# `make help` lists the targets, one line each.

SHELL       := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

STATICCHECK   := honnef.co/go/tools/cmd/staticcheck@v0.8.2
GOLANGCI_LINT := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0

# All modules of this repository, and those whose tests need no browser.
MODULES := $(patsubst ./%,%,$(patsubst %/,%,$(dir $(shell git ls-files '*go.mod'))))
PUBLIC  := . fleet/boltfleet fleet/redisfleet oauth/broker

# Packages with goroutines of their own, which check tests with the race detector.
RACE := ./client ./internal/conn ./internal/httpserve ./mcpkit ./ext/events ./ext/tasks ./fleet/... ./transport/...

# The platforms that the library must compile for, tests included.
PLATFORMS := linux/386 linux/arm64 windows/amd64 darwin/arm64

# A program with the race detector sleeps for a second before it exits; tests run many programs.
export GORACE := atexit_sleep_ms=0

# The steps of a target write to the same tree.
.NOTPARALLEL:

.PHONY: help
help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1	/p' $(MAKEFILE_LIST) | awk -F'\t' '{ printf "  %-12s %s\n", $$1, $$2 }'

# The tests of fleets wait for timers most of the time, so the modules are tested side by side.
.PHONY: test
test: ## vet and test the modules that users import; installs nothing
	@command -v redis-server >/dev/null || echo "redis-server is missing: the tests of fleet/redisfleet that need it are skipped"
	@for dir in $(PUBLIC); do (cd $$dir && echo "vet $$dir" && go vet -structtag=false ./...); done
	@failed=0; pids=; \
	for dir in $(PUBLIC); do (cd $$dir && go test -vet=off ./...) & pids+=" $$!"; done; \
	for pid in $$pids; do wait $$pid || failed=1; done; \
	exit $$failed
	@echo "mcptest/browser is skipped: make browser tests it in Chromium"

# run PARTS runs targets in order, and prints the time of each.
define run
	@report=; \
	for part in $(1); do \
		begun=$$SECONDS; \
		$(MAKE) --no-print-directory $$part || { echo "$@: $$part failed after $$((SECONDS - begun)) s" >&2; exit 1; }; \
		report+=$$(printf '  %-14s %4d s' $$part $$((SECONDS - begun)))$$'\n'; \
	done; \
	printf '$@: passed\n%s  %-14s %4d s\n' "$$report" total $$SECONDS
endef

.PHONY: check
check: ## everything that must pass before a change is merged, within 10 minutes
	$(call run,redis test format staticcheck race snippets fresh conformance interop-quick)

.PHONY: nightly
nightly: ## everything that takes long: race and long tests everywhere, lint, browser, soak, fuzz, interop, bench
	$(call run,redis long-race lint platforms browser soak fuzz interop bench)

.PHONY: format
format: ## fail if gofmt would change a file
	@unformatted=$$(git ls-files -z --cached --others --exclude-standard -- '*.go' | xargs -0 gofmt -l); \
	if [ -n "$$unformatted" ]; then printf 'not formatted, run gofmt -w:\n%s\n' "$$unformatted" >&2; exit 1; fi

# ST1020 to ST1022: doc comments begin with the name they document. The tests contain misspelt tags,
# fields and methods that only reflection uses, and functions that do not return the error last.
.PHONY: staticcheck
staticcheck: ## run staticcheck in all modules
	@for dir in $(MODULES); do (cd $$dir && echo "staticcheck $$dir" && \
		go run $(STATICCHECK) -checks inherit,ST1020,ST1021,ST1022,-SA5008,-U1000,-ST1008 ./...); done

.PHONY: lint
lint: ## run golangci-lint in all modules
	@for dir in $(MODULES); do (cd $$dir && echo "golangci-lint $$dir" && go run $(GOLANGCI_LINT) run ./...); done

.PHONY: race
race: ## test with the race detector where goroutines are
	go test -race -timeout 20m $(RACE)
	for dir in fleet/boltfleet fleet/redisfleet; do (cd $$dir && go test -race -timeout 20m ./...); done

.PHONY: long-race
long-race: ## test all modules with the race detector, long tests included
	@for dir in $(MODULES); do (cd $$dir && echo "test $$dir" && LONG_TESTS=1 go test -race -timeout 30m ./...); done

.PHONY: snippets
snippets: ## check snippets and commands of the pages, layers and doc comments
	LONG_TESTS=1 go test ./internal/housetest

.PHONY: fresh
fresh: ## run the generators and fail if they change a file
	@internal/scripts/fresh.sh

.PHONY: conformance
conformance: ## run the official MCP conformance suite (needs npm)
	@internal/conformance/run.sh

.PHONY: interop
interop: ## test with the clients and servers of other SDKs (needs npm)
	@internal/interop/run.sh

.PHONY: interop-quick
interop-quick: ## test with one client of the TypeScript SDK and one of go-sdk (needs npm)
	@internal/interop/run.sh "go-sdk at mcpkit" http 2026-07-28
	@internal/interop/run.sh "@modelcontextprotocol/client at mcpkit" http 2025-11-25

.PHONY: platforms
platforms: ## check the types for other platforms
	@for p in $(PLATFORMS); do echo "vet $$p" && CGO_ENABLED=0 GOOS=$${p%/*} GOARCH=$${p#*/} go vet -structtag=false ./...; done

# Without root or apt-get, and with redis-server missing, the tests of its engine skip and say so.
.PHONY: redis
redis: ## install redis-server, if it is missing and this is Debian
	@command -v redis-server >/dev/null || $(call install,redis-server)

# Without root or apt-get, and with Chromium missing, the tests skip and say so.
.PHONY: browser
browser: ## test pages in Chromium, which is installed if it is missing and this is Debian
	@command -v chromium chromium-browser google-chrome google-chrome-stable >/dev/null || $(call install,chromium)
	cd mcptest/browser && go test -race -timeout 20m ./...

.PHONY: pictures
pictures: ## make the picture of the playground in docs anew
	cd mcptest/browser && SCREENSHOT=$(CURDIR)/docs/playground.png go test -count=1 -run '^TestPlaygroundShowsTheStepsOfACall$$' .

define install
{ [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null || exit 0; echo "installing $(1)"; \
	{ apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $(1); } >/dev/null; }
endef

# How long the replicas of a fleet are killed.
SOAK ?= 5m

.PHONY: soak
soak: ## kill the replicas of a fleet for SOAK (5m) under load (needs redis-server, unshare and ip)
	cd internal/soak && go run -exec "unshare --net --map-root-user ./network.sh" . -for $(SOAK)

.PHONY: fuzz
fuzz: ## run each fuzz target for FUZZTIME (10s)
	@internal/scripts/fuzz.sh $(or $(FUZZTIME),10s)

.PHONY: bench
bench: ## compare the cost of a call, start and size with other SDKs (Linux)
	cd internal/bench && go run .

.PHONY: generate
generate: ## run the generators
	go generate ./...

.PHONY: tidy
tidy: ## tidy all modules
	@for dir in $(MODULES); do (cd $$dir && go mod tidy); done

.PHONY: clean
clean: ## remove caches and results
	rm -rf .cache bin internal/conformance/results
