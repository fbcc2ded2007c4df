#!/usr/bin/env bash
# Runs the official MCP conformance suite and checks its results strictly.
#
# usage: internal/conformance/run.sh [LEG...]        runs the named legs, or all; `internal/conformance/run.sh -l` lists them
#   SERVER_URL=http://127.0.0.1:8080/mcp    tests a running server instead of ./internal/conformance/server
#   CI=true                                 fails if npm is missing; otherwise the script prints a
#                                           warning and runs nothing
#
# A leg is one run of the suite. All server legs test one process at one URL. For client legs, the
# suite starts ./internal/conformance/client once for each scenario, all at the same time. For authorization
# legs, the suite is a client of ./internal/conformance/authorization. Results are in internal/conformance/results.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(dirname "$(dirname "$here")")
cache=$root/.cache/conformance
results=$here/results
# Milliseconds after which a scenario that hangs fails. It is long because the machine may be busy.
scenario_timeout=300000

# Prints one line for each leg: its name and its number of scenarios. The name is the kind of leg
# and the protocol version, the extension, the suite, or the way in which clients authenticate. A new kind of leg
# needs a function run_KIND, and setup_KIND for what its legs share.
legs() {
	cat <<-'END'
		server-2025-06-18 27
		server-2025-11-25 33
		server-2026-07-28 40
		server-skills 3
		server-tasks 9
		client-2025-06-18 5
		client-2025-11-25 19
		client-2026-07-28 33
		client-extensions 6
		client-skills 4
		client-backcompat 2
		authorization-none 2
		authorization-client_secret_basic 2
		authorization-client_secret_post 2
	END
}

say() { printf 'conformance: %s\n' "$*"; }
die() { say "$*" >&2; exit 1; }

# require_npm exits if npm is missing: with code 1 in CI, elsewhere with code 0.
require_npm() {
	command -v npm >/dev/null && return
	[ "${CI:-}" = true ] && die "npm is not installed, and CI must run the conformance suite"
	cat >&2 <<-'END'

		  ************************************************************************
		  **  CONFORMANCE WAS NOT TESTED: npm is not installed.                 **
		  **  Install npm, then run `make conformance`.                         **
		  ************************************************************************

	END
	exit 0
}

# install_suite installs the suite that suite/package-lock.json pins into the cache, and adds it to
# PATH.
install_suite() {
	local dir=$cache/suite
	if ! cmp -s "$here/suite/package-lock.json" "$dir/installed-lock.json"; then
		rm -rf "$dir"
		mkdir -p "$dir"
		cp "$here/suite/package.json" "$here/suite/package-lock.json" "$dir/"
		say "installing the suite"
		npm ci --prefix "$dir" --ignore-scripts --no-audit --no-fund --loglevel=error || die "npm could not install the suite"
		cp "$dir/package-lock.json" "$dir/installed-lock.json"
	fi
	PATH=$dir/node_modules/.bin:$PATH # on linux-x64 it contains the pinned Node.js
	local major
	major=$(node -p 'process.versions.node.split(".")[0]') || die "node does not run"
	[ "$major" -ge 22 ] || die "the suite needs Node.js 22 or newer; this one is $(node --version)"
	say "suite $(conformance --version), Node.js $(node --version)"
}

server_pid= authorization_pid=
# stop PID ends a server. PID may be empty.
stop() {
	[ -n "$1" ] || return 0
	kill "$1" 2>/dev/null || true
	wait "$1" 2>/dev/null || true
}
trap 'stop "$server_pid"; stop "$authorization_pid"' EXIT

# free_addr prints a free address. Its port is below the range from which the kernel assigns ports
# to other processes.
free_addr() {
	node -e 'const pick = () => {
		const port = 20000 + Math.floor(Math.random() * 12000);
		const s = require("net").createServer().once("error", pick);
		s.listen(port, "127.0.0.1", () => s.close(() => console.log(`127.0.0.1:${port}`)));
	}; pick()'
}

# await_server PID URL LOG waits until a server sends any HTTP response. It fails if the server
# exits.
await_server() {
	for _ in $(seq 1500); do
		kill -0 "$1" 2>/dev/null || { tail -n 20 "$3" >&2; die "the server exited at once"; }
		node -e 'fetch(process.argv[1], { method: "OPTIONS", signal: AbortSignal.timeout(2000) }).then(() => process.exit(0), () => process.exit(1))' "$2" && return 0
		sleep 0.2
	done
	die "the server did not start listening at $2 within 5 minutes"
}

# setup_server builds and starts the server under test, unless SERVER_URL is set.
setup_server() {
	[ -z "${SERVER_URL:-}" ] || return 0
	say "building ./internal/conformance/server"
	(cd "$root" && go build -o "$cache/server" ./internal/conformance/server)
	local addr
	addr=$(free_addr)
	"$cache/server" -addr "$addr" >"$results/server.log" 2>&1 &
	server_pid=$!
	SERVER_URL=http://$addr/mcp
	await_server "$server_pid" "$SERVER_URL" "$results/server.log"
}

# run_scenarios KIND PREFIX OUT ARGS... runs the scenarios whose names begin with PREFIX, one after
# another. The suite has no option that selects the scenarios of one extension. It lists
# tasks-status-notifications, but has no checks for it: every server skips it.
run_scenarios() {
	local kind=$1 prefix=$2 out=$3 names name status=0
	shift 3
	names=$(conformance list "--$kind" | sed -n "s/^  - \($prefix[^ ]*\).*/\1/p" | grep -vx tasks-status-notifications)
	echo "Running $prefix ($(wc -w <<<"$names") scenarios)"
	for name in $names; do
		conformance "$kind" --timeout "$scenario_timeout" --scenario "$name" -o "$out" "$@" 2>&1 || status=$?
	done
	return $status
}

# run_server LEG SCENARIOS tests the server in one protocol version, or with one extension.
run_server() {
	local leg=$1 scenarios=$2 out=$results/$1 status=0
	rm -rf "$out"
	mkdir -p "$out"
	case ${leg#server-} in
	skills) run_scenarios server sep-2640- "$out/checks" --url "$SERVER_URL" >"$out/suite.log" || status=$? ;;
	tasks) run_scenarios server tasks- "$out/checks" --url "$SERVER_URL" >"$out/suite.log" || status=$? ;;
	*) conformance server --timeout "$scenario_timeout" --url "$SERVER_URL" --suite all --spec-version "${leg#server-}" -o "$out/checks" >"$out/suite.log" 2>&1 || status=$? ;;
	esac
	if [ -n "$server_pid" ] && ! kill -0 "$server_pid" 2>/dev/null; then
		tail -n 40 "$results/server.log" >&2
		die "$leg: the server exited during the run"
	fi
	node "$here/judge.mjs" --leg "$leg" --checks "$out/checks" --log "$out/suite.log" --status "$status" \
		--scenarios "$scenarios" --baseline "$here/baseline.txt"
}

# setup_client builds the client under test.
setup_client() {
	case $cache in *[[:space:]]*) die "the suite splits its command at spaces, and the path $cache contains some" ;; esac
	say "building ./internal/conformance/client"
	(cd "$root" && go build -o "$cache/client" ./internal/conformance/client)
}

# run_client LEG SCENARIOS tests the client in one protocol version, with one extension, or with one
# of the suites without a version. The suite ignores the exit codes of clients; a client that fails prints FAILED
# to its standard error.
run_client() {
	local leg=$1 scenarios=$2 out=$results/$1 status=0 bad=0 what
	case ${leg#client-} in
	20*) what="--suite all --spec-version ${leg#client-}" ;;
	*) what="--suite ${leg#client-}" ;;
	esac
	rm -rf "$out"
	mkdir -p "$out"
	if [ "$leg" = client-skills ]; then
		run_scenarios client sep-2640- "$out/checks" --command "$cache/client" >"$out/suite.log" || status=$?
	else
		# shellcheck disable=SC2086 # the variable holds several words
		conformance client --timeout "$scenario_timeout" --command "$cache/client" $what -o "$out/checks" >"$out/suite.log" 2>&1 || status=$?
	fi
	node "$here/judge.mjs" --leg "$leg" --checks "$out/checks" --log "$out/suite.log" --status "$status" \
		--scenarios "$scenarios" --baseline "$here/baseline.txt" || bad=1
	local failed
	failed=$(grep -rhE --include=stderr.txt '^(FAILED|panic:|fatal error:)' "$out/checks") || true
	[ -z "$failed" ] || { say "$leg: clients failed:"; printf '  %s\n' "$failed"; bad=1; }
	return $bad
}

# setup_authorization builds the authorization server under test.
setup_authorization() {
	say "building ./internal/conformance/authorization"
	(cd "$root" && go build -o "$cache/authorization" ./internal/conformance/authorization)
}

# run_authorization LEG SCENARIOS tests the authorization server with one way of client
# authentication. follow.mjs opens the login page in place of the user.
run_authorization() {
	local leg=$1 scenarios=$2 out=$results/$1 status=0 addr back who="--client-id public"
	[ "$leg" = authorization-none ] || who="--client-id confidential --client-secret conformance-secret"
	rm -rf "$out"
	mkdir -p "$out"
	addr=$(free_addr)
	back=$(free_addr)
	"$cache/authorization" -addr "$addr" -auth "${leg#authorization-}" >"$out/server.log" 2>&1 &
	authorization_pid=$!
	await_server "$authorization_pid" "http://$addr/token" "$out/server.log"
	# shellcheck disable=SC2086 # the variable holds several words
	conformance authorization --url "http://$addr" $who --resource http://127.0.0.1/mcp --port "${back#*:}" -o "$out/checks" 2>&1 |
		node "$here/follow.mjs" "http://$addr" >"$out/suite.log" || status=$?
	stop "$authorization_pid"
	authorization_pid=
	node "$here/judge.mjs" --leg "$leg" --checks "$out/checks" --log "$out/suite.log" --status "$status" \
		--scenarios "$scenarios" --baseline "$here/baseline.txt"
}

main() {
	[ "${1:-}" != -l ] || { legs | cut -d' ' -f1; return; }
	local leg scenarios kind ready=" " bad=0 known
	known=$(legs)
	for leg in "$@"; do
		grep -q "^$leg " <<<"$known" || die "unknown leg $leg; the legs are: $(cut -d' ' -f1 <<<"$known" | paste -sd' ' -)"
	done

	require_npm
	mkdir -p "$cache" "$results"
	install_suite
	node --test "$here/judge_test.mjs" >"$results/judge_test.log" || { cat "$results/judge_test.log" >&2; die "the tests of judge.mjs failed"; }
	while read -r leg scenarios <&3; do
		[ $# -eq 0 ] || [[ " $* " == *" $leg "* ]] || continue
		kind=${leg%%-*}
		if [[ $ready != *" $kind "* ]]; then
			"setup_$kind"
			ready+="$kind "
		fi
		"run_$kind" "$leg" "$scenarios" || bad=1
	done 3<<<"$known"
	[ $bad -eq 0 ] || die "failed; logs are in internal/conformance/results"
	say "passed"
}

main "$@"
