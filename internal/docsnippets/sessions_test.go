package docsnippets

// moduleReadme stands for the README of the module that mcpkit new writes.
const moduleReadme = "README.md of mcpkit new"

// The sessions follow the pages. Addresses on this machine are replaced by free ones, and W is the
// folder of all sessions.
var sessions = []session{
	{name: "clone", steps: []step{
		{page: "README.md", line: "git clone https://github.com/mcpkit/mcpkit-go"},
		{page: "README.md", line: "cd mcpkit-go"},
		{page: "docs/reference/cli.md", line: "go install ./cmd/mcpkit"},
		{page: "README.md", line: "go run ./cmd/mcpkit new ../shop", prints: "wrote ../shop"},
		{page: "docs/howto/serve-skills.md", line: "go run ./cmd/mcpkit skills 'go run ./examples/skills'", prints: "commit-messages"},
		{page: "docs/README.md", line: "go doc ./mcpkit", prints: "package mcpkit"},
		{page: "docs/reference/middleware.md", line: "go doc ./middleware", prints: "package middleware"},
		{page: "docs/reference/schemas.md", line: "go doc ./mcpkit Union", prints: "func Union"},
		{page: "docs/howto/run-conformance.md", line: "internal/conformance/run.sh -l", prints: "server-2026-07-28"},
		{page: "docs/howto/run-conformance.md", line: "go run ./internal/conformance/server -addr 127.0.0.1:3001", serves: "127.0.0.1:3001"},
		{page: "docs/howto/run-conformance.md", line: "mcpkit inspect ws://127.0.0.1:3001/ws", prints: "tool"},
		{page: "docs/reference/cli.md", line: "source <(mcpkit completion bash)"},
		{line: "complete -p mcpkit", prints: "mcpkit"},
		{page: "CONTRIBUTING.md", line: "go work init $(git ls-files '*go.mod' | xargs dirname)"},
		{line: "go list -m github.com/mcpkit/mcpkit-go; rm go.work", prints: "github.com/mcpkit/mcpkit-go"},
	}},

	{name: "login", begin: "mcpkit-go", steps: []step{
		{page: "docs/howto/protect-a-server.md", line: "go run ./examples/diary -http 127.0.0.1:8080 -demo", serves: "127.0.0.1:8080"},
		{page: "docs/howto/protect-a-server.md", line: `go run ./examples/diary -write "It rained." http://127.0.0.1:8080/mcp`, prints: "1"},
		{page: "docs/howto/log-in.md", line: "mcpkit list -login", as: "mcpkit list -login http://127.0.0.1:8080/mcp", why: "the sentence leaves out the server", prints: "write"},
		{page: "docs/howto/log-in.md", line: "mcpkit call -login", as: "mcpkit call -login http://127.0.0.1:8080/mcp read", why: "the sentence leaves out the server and the tool"},
		{page: "docs/howto/authorization-servers.md", line: "mcpkit call -login", as: "mcpkit call -login http://127.0.0.1:8080/mcp read", why: "the sentence leaves out the server and the tool"},
		{line: "mcpkit logout http://127.0.0.1:8080/mcp"},
	}},

	{name: "tasks", begin: "mcpkit-go", steps: []step{
		{line: "go run ./examples/trips -http 127.0.0.1:8080", serves: "127.0.0.1:8080"},
		{line: "SERVER=http://127.0.0.1:8080/mcp; answers='-answer from=2026-12-31 -answer nights=3 -yes'"},
		{page: "docs/howto/call-tasks.md", line: "mcpkit call SERVER book city=Oslo", as: "mcpkit call $SERVER book city=Oslo $answers", why: "SERVER is a placeholder, and the questions need a terminal or answers"},
		{page: "docs/howto/call-tasks.md", line: "mcpkit call -start SERVER book city=Oslo", as: "ID=$(mcpkit call -output text -start $SERVER book city=Oslo $answers); echo $ID", why: "SERVER is a placeholder, and the questions need a terminal or answers"},
		{page: "docs/howto/call-tasks.md", line: "mcpkit tasks SERVER ID", as: "mcpkit tasks $SERVER $ID", why: "SERVER and ID are placeholders"},
		{page: "docs/howto/call-tasks.md", line: "mcpkit tasks SERVER ID answer", as: "mcpkit tasks $SERVER $ID answer $answers", why: "SERVER and ID are placeholders, and the questions need a terminal or answers"},
		{page: "docs/howto/call-tasks.md", line: "mcpkit tasks SERVER ID wait", as: "mcpkit tasks $SERVER $ID wait $answers", why: "SERVER and ID are placeholders, and the questions need a terminal or answers"},
		{page: "docs/howto/call-tasks.md", line: "mcpkit tasks SERVER ID cancel", as: "ID=$(mcpkit call -output text -start $SERVER book city=Oslo $answers); mcpkit tasks $SERVER $ID cancel", why: "SERVER and ID are placeholders"},
	}},

	{name: "gateway", begin: "gateway", steps: []step{
		{line: "cp ../mcpkit-go/examples/gateway/gateway.yaml .; (cd ../mcpkit-go; go build -o ../gateway/gateway ./examples/gateway)"},
		{line: "export WEATHER_URL=http://127.0.0.1:9/mcp"},
		{page: "docs/howto/configure.md", line: "head -c 64 /dev/urandom > state.key"},
		{page: "docs/howto/troubleshoot.md", line: "head -c 64 /dev/urandom > state.key"},
		{page: "docs/howto/configure.md", line: "MCPKIT_TRANSPORT_HTTP_ADDR=:9090 MCPKIT_MIDDLEWARE_RATE_LIMIT_BURST=50 ./gateway",
			as: "MCPKIT_TRANSPORT_HTTP_ADDR=127.0.0.1:9090 MCPKIT_MIDDLEWARE_RATE_LIMIT_BURST=50 ./gateway", why: "the port may be in use", serves: "127.0.0.1:9090"},
		{line: "mcpkit call http://127.0.0.1:9090/mcp hours", prints: "9 to 17"},
	}},

	{name: "own module", begin: "mine", steps: []step{
		{line: "go mod init example.com/mine; cp ../mcpkit-go/examples/hello/main.go ."},
		{page: "README.md", line: "go mod edit -replace=github.com/mcpkit/mcpkit-go=../mcpkit-go -tool=github.com/mcpkit/mcpkit-go/cmd/mcpkit"},
		{page: "README.md", line: "go mod tidy"},
		{page: "README.md", line: "go tool mcpkit call 'go run .' greet Name=Ann", prints: "Ann"},
		{line: "go mod edit -droptool=github.com/mcpkit/mcpkit-go/cmd/mcpkit"},
		{page: "docs/howto/describe-tools.md", line: "go mod edit -tool=github.com/mcpkit/mcpkit-go/cmd/mcpkit && go mod tidy"},
		{page: "docs/reference/cli.md", line: "go mod edit -tool=github.com/mcpkit/mcpkit-go/cmd/mcpkit && go mod tidy"},
		{page: "docs/reference/cli.md", line: "go mod tidy"},
	}},

	{name: "modules of their own", begin: "engines", steps: []step{
		{line: "go mod init example.com/engines; go mod edit -replace=github.com/mcpkit/mcpkit-go=../mcpkit-go"},
		{page: "docs/howto/run-on-many-machines.md", line: "go mod edit -replace=github.com/mcpkit/mcpkit-go/fleet/boltfleet=../mcpkit-go/fleet/boltfleet"},
		{page: "docs/howto/run-on-many-machines.md", line: "go mod edit -replace=github.com/mcpkit/mcpkit-go/fleet/natsfleet=../mcpkit-go/fleet/natsfleet"},
		{page: "docs/howto/run-on-many-machines.md", line: "go mod edit -replace=github.com/mcpkit/mcpkit-go/fleet/redisfleet=../mcpkit-go/fleet/redisfleet"},
		{page: "docs/howto/run-tasks.md", line: "go mod edit -replace=github.com/mcpkit/mcpkit-go/fleet/boltfleet=../mcpkit-go/fleet/boltfleet"},
		{page: "docs/howto/show-pages.md", line: "go mod edit -replace=github.com/mcpkit/mcpkit-go/mcptest/browser=../mcpkit-go/mcptest/browser"},
		{line: `(echo package engines; for p in fleet/boltfleet fleet/natsfleet fleet/redisfleet mcptest/browser; do echo "import _ \"github.com/mcpkit/mcpkit-go/$p\""; done) > engines.go`},
		{page: "README.md", line: "go mod tidy"},
		{line: "go list -deps .", prints: "mcpkit-go/mcptest/browser"},
	}},

	{name: "tutorial", steps: []step{
		{page: "docs/tutorial.md", line: "git clone https://github.com/mcpkit/mcpkit-go", as: "test -d mcpkit-go", why: "the first session has cloned it"},
		{page: "docs/tutorial.md", line: "mkdir notes"},
		{page: "docs/tutorial.md", line: "cd notes"},
		{page: "docs/tutorial.md", line: "go mod init example.com/notes"},
		{line: "cp ../mcpkit-go/docs/tutorial/*.go ."},
		{page: "docs/tutorial.md", line: "go mod edit -replace=github.com/mcpkit/mcpkit-go=../mcpkit-go -tool=github.com/mcpkit/mcpkit-go/cmd/mcpkit"},
		{page: "docs/tutorial.md", line: "go mod tidy"},
		{page: "docs/tutorial.md", line: "go tool mcpkit call 'go run .' forget", as: "go tool mcpkit call 'go run .' forget -yes", why: "questions need a terminal", prints: "forgot all notes"},
		{page: "docs/tutorial.md", line: "go build -o notes ."},
		{page: "docs/tutorial.md", line: "go tool mcpkit install claude-desktop ./notes"},
		{line: `cat "$HOME/.config/Claude/claude_desktop_config.json"`, prints: `/notes/notes"`},
		{page: "docs/tutorial.md", line: "export NOTES_SECRET=$(openssl rand -hex 32)"},
		{page: "docs/tutorial.md", line: "go run . -http 127.0.0.1:8080", serves: "127.0.0.1:8080"},
		{line: "mcpkit list http://127.0.0.1:8080/mcp || true", prints: "401"},
		{page: "docs/tutorial.md", line: "token=$(go run . -token ann)"},
		{page: "docs/tutorial.md", line: `go tool mcpkit call -header "Authorization: Bearer $token" http://127.0.0.1:8080/mcp whoami`, prints: "ann"},

		{page: "docs/howto/describe-tools.md", line: "mcpkit gen -type Notes"},
		{page: "docs/howto/troubleshoot.md", line: "go generate ./..."},
		{page: "docs/howto/describe-tools.md", line: "mcpkit gen -check ./..."},
		{page: "docs/howto/troubleshoot.md", line: "mcpkit gen -check ./..."},
		{page: "docs/howto/describe-tools.md", line: "go tool mcpkit vet ./...", prints: "about"},
		{page: "docs/howto/describe-tools.md", line: "go vet -vettool=$(which mcpkit) ./..."},
		{page: "docs/reference/cli.md", line: "go vet -vettool=$(which mcpkit) ./..."},

		{page: "docs/howto/install-in-a-chat-client.md", line: "go build -o notes ."},
		{page: "docs/howto/install-in-a-chat-client.md", line: "mcpkit install claude-desktop ./notes"},
		{line: "mcpkit install cursor ./notes && mcpkit status", prints: "cursor"},
		{page: "docs/howto/install-in-a-chat-client.md", line: "mcpkit uninstall cursor notes"},
	}},

	{name: "README of a new module", begin: "shop", steps: []step{
		{page: moduleReadme, line: "go test ./...", prints: "ok"},
		{page: moduleReadme, line: "go tool mcpkit inspect 'go run .'", prints: "find"},
		{page: moduleReadme, line: "go tool mcpkit call 'go run .' find text=tea", prints: "tea"},
		{page: moduleReadme, line: "go build -o shop ."},
		{page: moduleReadme, line: "go tool mcpkit install claude-desktop ./shop"},
		{page: moduleReadme, line: "./shop -http 127.0.0.1:8080", serves: "127.0.0.1:8080"},
		{line: "mcpkit call http://127.0.0.1:8080/mcp find text=tea", prints: "tea"},
	}},

	{name: "develop", begin: "develop", steps: []step{
		{page: "docs/howto/develop.md", line: "mcpkit new shop", prints: "wrote shop"},
		{page: "docs/howto/develop.md", line: "cd shop"},
		{page: "docs/howto/develop.md", line: "mcpkit dev", as: "mcpkit dev -http 127.0.0.1:7007 -no-open", why: "there is no terminal and no browser, and the port may be in use", serves: "127.0.0.1:7007"},
		{page: "docs/howto/develop.md", line: "mcpkit call http://127.0.0.1:7007/mcp find text=tea", prints: "tea"},
		{page: "docs/howto/develop.md", line: "mcpkit install claude-code 'mcpkit dev .'"},
		{page: "docs/howto/develop.md", line: "go build -o shop ."},
		{page: "docs/howto/develop.md", line: "mcpkit install claude-desktop ./shop"},
		{page: "docs/howto/develop.md", line: "mcpkit gen"},
		{page: "docs/howto/develop.md", line: "mcpkit bundle -o dist -target linux/amd64,darwin/arm64,windows/amd64 -ask 'SHOP_TOKEN=The token of your shop.'",
			as: "mcpkit bundle -o dist -ask 'SHOP_TOKEN=The token of your shop.'", why: "building for two other platforms takes minutes; TestBundlesAreBuiltForOtherPlatforms does it"},
	}},

	{name: "deploy", begin: "mcpkit-go", steps: []step{
		{page: "docs/howto/deploy.md", line: `CGO_ENABLED=0 go build -trimpath -ldflags="-s -w" -o ops ./examples/ops`},
		{line: `mkdir -p "$W/usr/local/bin" "$W/etc/systemd/system"; PATH="$W/usr/local/bin:$PATH"`},
		{page: "docs/howto/deploy.md", line: "install -m 755 ops /usr/local/bin/ops", as: `install -m 755 ops "$W/usr/local/bin/ops"`, why: notRoot},
		{page: "docs/howto/deploy.md", line: `install -D -m 600 /dev/stdin /etc/ops/env <<< "OPS_KEY=$(openssl rand -hex 32)"`,
			as: `install -D -m 600 /dev/stdin "$W/etc/ops/env" <<< "OPS_KEY=$(openssl rand -hex 32)"`, why: notRoot},
		{page: "docs/howto/deploy.md", line: "install -m 644 docs/deploy/ops.service /etc/systemd/system/ops.service",
			as: `install -m 644 docs/deploy/ops.service "$W/etc/systemd/system/ops.service"`, why: notRoot},
		{line: `(set -a; . "$W/etc/ops/env"; exec ops -http 127.0.0.1:8080 -audit "$W/audit.jsonl")`, serves: "127.0.0.1:8080"},
		{page: "docs/howto/deploy.md", line: "token=$(set -a; . /etc/ops/env; ops -token ann)", as: `token=$(set -a; . "$W/etc/ops/env"; ops -token ann)`, why: notRoot},
		{page: "docs/howto/deploy.md", line: `mcpkit call -header "Authorization: Bearer $token" https://orders.example.com/mcp find id=A1`,
			as: `mcpkit call -header "Authorization: Bearer $token" http://127.0.0.1:8080/mcp find id=A1`, why: "the name is an example; TestDockerfileOfOpsWorks calls through nginx and Caddy", prints: "1999"},
		{page: "docs/howto/deploy.md", line: "ops -token bob -scope orders:refund", as: `(set -a; . "$W/etc/ops/env"; ops -token bob -scope orders:refund)`, why: notRoot, prints: "ey"},
		{page: "docs/howto/install-in-a-chat-client.md", line: "mcpkit install vscode https://orders.example.com/mcp -header 'Authorization: Bearer …'",
			as: `mcpkit install vscode http://127.0.0.1:8080/mcp -header "Authorization: Bearer $token"`, why: "the name is an example"},
	}},

	{name: "bench", begin: "mcpkit-go/bench", steps: []step{
		{page: "internal/bench/README.md", line: "go run ./cmd/compare -only mcpkit -rows 'stdio: (add|search)'", as: "go run ./cmd/compare -only mcpkit -rows 'stdio: (add|search)' -rounds 1 -slice 10ms", why: short},
	}},
}

// Reasons that several commands share.
const (
	notRoot    = "the test writes into its own folder"
	short      = "the measurement takes long"
	partOfAll  = "make check runs it"
	takesLong  = "it takes minutes"
	needsNpm   = "it needs npm, and is a part of make check"
	needsAdmin = "it needs root and a machine with systemd"
)

var unruns = []unrun{
	{page: "README.md", line: "make check", why: "this test is a part of it"},
	{page: "CONTRIBUTING.md", line: "make check", why: "this test is a part of it"},
	{page: "CONTRIBUTING.md", line: "make lint", why: partOfAll},
	{page: "CONTRIBUTING.md", line: "make fresh", why: partOfAll},
	{page: "CONTRIBUTING.md", line: "make browser", why: partOfAll},
	{page: "CONTRIBUTING.md", line: "make pages", why: "it runs this test"},
	{page: "docs/howto/show-pages.md", line: "make chromium", why: partOfAll},
	{page: "CONTRIBUTING.md", line: "go generate ./internal/scripts/limits", why: "make fresh, a part of make check, runs it"},
	{page: "CONTRIBUTING.md", line: "make soak", why: takesLong},
	{page: "CONTRIBUTING.md", line: "go test ./PACKAGE", why: "PACKAGE is a placeholder, and this test runs so"},
	{page: "CONTRIBUTING.md", line: "go test ./...", why: "make check runs all tests"},
	{page: "CONTRIBUTING.md", line: "make test", why: partOfAll},
	{page: "CONTRIBUTING.md", line: "go test ./internal/docsnippets -update", why: "it would run this test again, and writes only what TestSnippetsAreCutFromCode compares"},
	{page: "SECURITY.md", line: "go run golang.org/x/vuln/cmd/govulncheck@latest ./...", why: "its result changes with the database of vulnerabilities, which it downloads"},
	{page: "internal/bench/README.md", line: "go run ./cmd/compare", why: takesLong},
	{page: "internal/bench/README.md", line: "go build -o before ./cmd/server-mcpkit", why: "it is for the next command"},
	{page: "internal/bench/README.md", line: "go run ./cmd/compare -only mcpkit,before=./before", why: takesLong},
	{page: "internal/bench/README.md", line: "go run ./cmd/compare -rows growth -plots ../docs", why: takesLong},
	{page: "internal/bench/README.md", line: "go run ./cmd/compare -only mcpkit -rows 'search' -profiles DIR", why: takesLong},
	{page: "internal/bench/README.md", line: "make bench-check", why: takesLong},
	{page: "internal/bench/README.md", line: "make bench-gate", why: takesLong},
	{page: "docs/performance.md", line: "make bench-check", why: takesLong},
	{page: "docs/performance.md", line: "go test -run '^$' -bench . .", why: takesLong},
	{page: "internal/bench/README.md", line: "go run ./cmd/clients", why: takesLong},
	{page: "internal/bench/README.md", line: "go run ./cmd/clients -only mcpkit,mcpgo -jobs add -setting HTTP", why: takesLong},
	{page: "internal/bench/README.md", line: "go run ./cmd/clients -stock", why: takesLong},
	{page: "internal/bench/README.md", line: "go test -run '^$' -bench Call ../client", why: takesLong},
	{page: "internal/bench/README.md", line: "go test -run Extensions -v -bench Extensions .", why: takesLong},
	{page: "internal/bench/README.md", line: "go run ./cmd/clients -rounds 5", why: takesLong},
	{page: "internal/bench/README.md", line: "go test -bench . ./...", why: takesLong},
	{page: "internal/bench/README.md", line: "go test -run '^$' -bench . ./tasks/...", why: takesLong},
	{page: "docs/reference/middleware.md", line: "go test ./middleware/... -run '^$' -bench . -benchtime 300x -count 120", why: takesLong},
	{page: "docs/howto/run-conformance.md", line: "make conformance", why: needsNpm},
	{page: "docs/howto/run-conformance.md", line: "internal/conformance/run.sh server-2026-07-28", why: needsNpm},
	{page: "docs/howto/run-conformance.md", line: "SERVER_URL=http://127.0.0.1:8080/mcp internal/conformance/run.sh", why: "it needs npm"},
	{page: "docs/howto/run-interop.md", line: "make interop", why: needsNpm},
	{page: "docs/howto/run-on-many-machines.md", line: "make interop", why: needsNpm},
	{page: "docs/howto/run-interop.md", line: "internal/interop/run.sh fleet", why: needsNpm},
	{page: "docs/howto/run-interop.md", line: "internal/interop/run.sh go-sdk", why: needsNpm},
	{page: "docs/howto/run-interop.md", line: "internal/interop/run.sh http 2026-07-28", why: needsNpm},
	{page: "docs/howto/run-interop.md", line: "internal/interop/run.sh mcpkit", why: needsNpm},
	{page: "docs/howto/run-interop.md", line: `internal/interop/run.sh mcpkit "mcpkit at mcp-go"`, why: needsNpm},
	{page: "docs/howto/run-interop.md", line: "internal/interop/run.sh login", why: needsNpm},
	{page: "docs/howto/run-interop.md", line: "npx @modelcontextprotocol/inspector --cli --format json --method tools/list --strict ./server", why: "it needs npm; internal/interop/ts/inspector.mjs runs it with these flags"},
	{page: "docs/howto/run-in-production.md", line: "docker run -p 127.0.0.1:8080:8080", why: "it needs Docker, and is only the flag of a command"},
	{page: "docs/howto/run-on-many-machines.md", line: "cd examples/fleet", why: "it is for the next command"},
	{page: "docs/howto/run-on-many-machines.md", line: "go run . -chaos 30s", test: "examples/fleet.TestNoClientNoticesThatReplicasAreKilled"},
	{page: "docs/howto/deploy.md", line: "systemd-analyze verify /etc/systemd/system/ops.service", test: "internal/docsnippets.TestSystemdUnitIsValid"},
	{page: "docs/howto/deploy.md", line: "systemctl enable --now ops.service", why: needsAdmin},
	{page: "docs/howto/deploy.md", line: "journalctl -u ops.service", why: needsAdmin},
	{page: "docs/howto/deploy.md", line: "nginx -t", test: "internal/docsnippets.TestNginxConfigurationIsValid"},
	{page: "docs/howto/deploy.md", line: "systemctl reload nginx", why: needsAdmin},
	{page: "docs/howto/install-in-a-chat-client.md", line: "go run ./notes", why: "it is what an entry of a file contains"},
	{page: "docs/howto/test-your-service.md", line: "go test -update", test: "mcptest.TestGoldenWritesWhatItThenAccepts"},
	{page: "docs/reference/cli.md", line: "mcpkit completion bash", why: "the session of the clone runs it in source <(mcpkit completion bash)"},
}
