# Every target is one line of `make help`.

SHELL       := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2

# The modules of this repository: the library; bench, which also measures its peers; clients and servers of theirs; and a test
# with echo's JWT middleware.
MODULES := . $(patsubst %/go.mod,%,$(wildcard bench/go.mod interop/gosdk/go.mod interop/mcpgo/go.mod interop/echojwt/go.mod))

# How long each benchmark runs; `make bench BENCHTIME=5s` for figures to keep.
BENCHTIME ?= 1s

# The steps of check write to the same tree.
.NOTPARALLEL:

.PHONY: help
help: ## say what there is
	@sed -n 's/^\([a-z-]*\):.*## /\1	/p' $(MAKEFILE_LIST) | awk -F'\t' '{ printf "  %-12s %s\n", $$1, $$2 }'

# The parts of check, in order.
PARTS := lint test fresh conformance interop

.PHONY: check
check: ## everything that has to hold before a change goes in, and how long each part took
	@report=; \
	for part in $(PARTS); do \
		begun=$$SECONDS; \
		$(MAKE) --no-print-directory $$part || { echo "check: $$part failed after $$((SECONDS - begun)) s" >&2; exit 1; }; \
		report+=$$(printf '  %-12s %4d s' $$part $$((SECONDS - begun)))$$'\n'; \
	done; \
	printf 'check: all is well\n%s  %-12s %4d s\n' "$$report" total $$SECONDS

.PHONY: test
# A program with the race detector sleeps a second before it ends, unless told otherwise; many tests run programs.
test: ## tests with the race detector, examples included; what calls allocate and large resources need, without it
	GORACE=atexit_sleep_ms=0 go test -race ./...
	go test -run 'Allocate|LargeResources|CostsBounded' ./mcpkit ./client ./transport/stdio
	go test -tags mcpkit_plain ./reflectx ./internal/jsonx ./client
	cd interop/echojwt && go test ./...

.PHONY: lint
lint: fmt-check vet staticcheck platforms ## formatting, vet, staticcheck, and the platforms the library compiles for

.PHONY: fmt
fmt: ## format all Go files
	@git ls-files -z --cached --others --exclude-standard -- '*.go' | xargs -0 gofmt -w

.PHONY: fmt-check
fmt-check:
	@unformatted=$$(git ls-files -z --cached --others --exclude-standard -- '*.go' | xargs -0 gofmt -l); \
	if [ -n "$$unformatted" ]; then printf 'not formatted, run make fmt:\n%s\n' "$$unformatted" >&2; exit 1; fi

# Tests have misspelt tags, and fields and methods that only reflection reaches: that is what they are about.
# So tags, unused code and the place of errors among results are looked at outside of tests alone, by staticcheck (SA5008,
# U1000, ST1008), which can leave them out.
.PHONY: vet
vet:
	@for dir in $(MODULES); do (cd $$dir && echo "vet $$dir" && go vet -structtag=false ./...); done

# Where the library has to compile besides this machine; vet compiles the tests as well.
PLATFORMS := linux/386 linux/arm64 windows/amd64 darwin/arm64

.PHONY: platforms
platforms: ## vet for other platforms
	@for platform in $(PLATFORMS); do echo "vet for $$platform" && \
		GOOS=$${platform%/*} GOARCH=$${platform#*/} CGO_ENABLED=0 go vet -structtag=false ./...; done

.PHONY: staticcheck
staticcheck:
	@for dir in $(MODULES); do (cd $$dir && echo "staticcheck $$dir" && \
		go run $(STATICCHECK) -tests=false ./... && \
		go run $(STATICCHECK) -checks inherit,-SA5008,-U1000,-ST1008 ./...); done

.PHONY: bench
bench: ## benchmarks of every module
	@for dir in $(MODULES); do (cd $$dir && go test -run '^$$' -bench . -benchmem -benchtime $(BENCHTIME) ./...); done

.PHONY: compare
compare: ## CPU time a request costs this project's server, its peers' and a floor (two minutes, Linux)
	cd bench && go run ./cmd/compare

.PHONY: lines
lines: ## how large the library is: lines of code, files, exported names, the largest structs
	@scripts/lines.sh

.PHONY: fuzz
fuzz: ## every fuzz target for FUZZTIME (10s)
	@scripts/fuzz.sh $(or $(FUZZTIME),10s)

.PHONY: conformance
conformance: ## the official MCP conformance suite, servers, clients and authorization (needs npm)
	@conformance/run.sh

.PHONY: interop
interop: ## the clients that others wrote against our servers, ours against theirs (needs npm)
	@interop/run.sh

.PHONY: generate
generate: ## write the generated files anew
	go generate ./...

.PHONY: fresh
fresh: ## generate, and fail if that changed anything
	@scripts/fresh.sh

.PHONY: tidy
tidy: ## tidy every module
	@for dir in $(MODULES); do (cd $$dir && go mod tidy); done

.PHONY: clean
clean: ## remove what make left behind
	rm -rf .cache bin conformance/results
