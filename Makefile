# `make help` lists the targets, one line each.

SHELL       := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2

# The modules of this repository: the library, the benchmarks, the tutorial, stores and engines with
# dependencies of their own, tests with other SDKs and routers, and tests in a browser.
MODULES := . $(patsubst %/go.mod,%,$(wildcard internal/bench/go.mod docs/tutorial/go.mod internal/interop/*/go.mod examples/*/go.mod mcptest/*/go.mod fleet/*/go.mod))

# The time that each benchmark runs. Use `make bench BENCHTIME=5s` for figures to publish.
BENCHTIME ?= 1s

# Every target runs the long tests, too, which go test alone skips (internal/longtest).
export LONG_TESTS := 1

# The steps of check write to the same tree.
.NOTPARALLEL:

.PHONY: help
help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1	/p' $(MAKEFILE_LIST) | awk -F'\t' '{ printf "  %-12s %s\n", $$1, $$2 }'

# The parts of check, in order.
PARTS := lint test bench-gate browser fresh conformance interop

.PHONY: check
check: ## everything that must pass before a change is merged, with the time of each part
	@report=; \
	for part in $(PARTS); do \
		begun=$$SECONDS; \
		$(MAKE) --no-print-directory $$part || { echo "check: $$part failed after $$((SECONDS - begun)) s" >&2; exit 1; }; \
		report+=$$(printf '  %-12s %4d s' $$part $$((SECONDS - begun)))$$'\n'; \
	done; \
	printf 'check: passed\n%s  %-12s %4d s\n' "$$report" total $$SECONDS

.PHONY: test
# By default, programs with the race detector sleep for a second before they exit, and many tests run
# programs.
test: redis ## all tests with the race detector; tests of allocations and floods without it
	GORACE=atexit_sleep_ms=0 go test -race -timeout 20m ./...
	go test -run 'Allocate|LargeResources|CostsBounded|UsesLimitedMemory|InChaos' ./mcpkit ./client ./transport/stdio
	go test -tags mcpkit_plain ./reflectx ./internal/jsonx ./internal/duplex ./client ./mcpkit
	for dir in internal/interop/echojwt internal/interop/migrate internal/interop/routers; do (cd $$dir && go test ./...); done
	cd docs/tutorial && go test ./...
	for dir in fleet/*/go.mod examples/*/go.mod; do (cd $${dir%/go.mod} && GORACE=atexit_sleep_ms=0 go test -race -timeout 20m ./...); done

# Without root or apt-get, and with redis-server missing, the tests of its engine say how to install
# it and skip. Debian starts the service when it installs the package; the tests do not need it.
.PHONY: redis
redis: ## install redis-server, if it is missing and this is Debian
	@command -v redis-server >/dev/null || { \
		[ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null || exit 0; \
		echo "installing redis-server"; \
		{ apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends redis-server; } >/dev/null; }

# How long the replicas of a fleet are killed.
SOAK ?= 10m

.PHONY: soak
soak: ## kill the replicas of a fleet for SOAK (10m) under load, and edit a program fifty times
	cd examples/fleet && go test -count 1 -timeout 24h -run Killed -v -args -soak $(SOAK)
	MCPKIT_DEV_EDITS=50 go test -race -timeout 30m -count=1 -v -run StayConnectedThroughEdits ./cmd/mcpkit/internal/dev

.PHONY: browser
browser: chromium ## test the pages of MCP Apps in Chromium
	cd mcptest/browser && go test -race -timeout 20m ./...

# Without root or apt-get, and with Chromium missing, the tests say how to install it and skip.
.PHONY: chromium
chromium: ## install Chromium, if it is missing and this is Debian
	@command -v chromium chromium-browser google-chrome google-chrome-stable >/dev/null || { \
		[ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null || exit 0; \
		echo "installing Chromium"; \
		{ apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends chromium; } >/dev/null; }

.PHONY: lint
lint: fmt-check vet staticcheck platforms ## check formatting, vet and staticcheck, for all platforms

.PHONY: fmt
fmt: ## format all Go files
	@git ls-files -z --cached --others --exclude-standard -- '*.go' | xargs -0 gofmt -w

.PHONY: fmt-check
fmt-check:
	@unformatted=$$(git ls-files -z --cached --others --exclude-standard -- '*.go' | xargs -0 gofmt -l); \
	if [ -n "$$unformatted" ]; then printf 'not formatted, run make fmt:\n%s\n' "$$unformatted" >&2; exit 1; fi

# The tests contain misspelt tags, fields and methods that only reflection uses, and functions that do
# not return the error last. So vet ignores struct tags, and staticcheck runs SA5008, U1000 and ST1008
# without the tests.
.PHONY: vet
vet:
	@for dir in $(MODULES); do (cd $$dir && echo "vet $$dir" && go vet -structtag=false ./...); done

# The platforms that the library must compile for, tests included.
PLATFORMS := linux/386 linux/arm64 windows/amd64 darwin/arm64

.PHONY: platforms
platforms: ## check the types for other platforms
	go run ./internal/scripts/platforms $(PLATFORMS)

.PHONY: staticcheck
staticcheck:
	@for dir in $(MODULES); do (cd $$dir && echo "staticcheck $$dir" && \
		go run $(STATICCHECK) -tests=false ./... && \
		go run $(STATICCHECK) -checks inherit,-SA5008,-U1000,-ST1008 ./...); done

.PHONY: bench
bench: ## run the benchmarks of all modules
	@for dir in $(MODULES); do (cd $$dir && go test -run '^$$' -bench . -benchmem -benchtime $(BENCHTIME) ./...); done

.PHONY: compare
compare: ## compare the cost of servers and clients with other SDKs and a minimal server (ten minutes, Linux)
	cd bench && go run ./cmd/compare

.PHONY: bench-check
bench-check: ## measure all rows and fail if a committed target that was reached is missed (ten minutes, Linux)
	cd bench && go build -o ../bin/compare ./cmd/compare && ../bin/compare -slice 150ms -check

# The ratios of CPU time to the floor, in one process. Tests assert the allocations: see test.
.PHONY: bench-gate
bench-gate: ## fail if a call costs a quarter more than before (seconds, Linux)
	@[ "$$(uname)" = Linux ] || { echo "bench-gate: CPU time is measured on Linux only"; exit 0; }; \
	cd bench && go build -o ../bin/compare ./cmd/compare && ../bin/compare -gate 0.25

.PHONY: lines
lines: ## measure the size of the library
	@internal/scripts/lines.sh

.PHONY: fuzz
fuzz: ## run each fuzz target for FUZZTIME (10s)
	@internal/scripts/fuzz.sh $(or $(FUZZTIME),10s)

.PHONY: conformance
conformance: ## run the official MCP conformance suite (needs npm)
	@internal/conformance/run.sh

.PHONY: interop
interop: ## test clients and servers of other SDKs with ours (needs npm)
	@internal/interop/run.sh

.PHONY: generate
generate: ## run the generators
	go generate ./...

.PHONY: fresh
fresh: ## run the generators and fail if they change a file
	@internal/scripts/fresh.sh

.PHONY: tidy
tidy: ## tidy all modules
	@for dir in $(MODULES); do (cd $$dir && go mod tidy); done

.PHONY: clean
clean: ## remove caches and results
	rm -rf .cache bin internal/conformance/results
