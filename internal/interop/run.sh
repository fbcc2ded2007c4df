#!/usr/bin/env bash
# Tests mcpkit with other SDKs: their clients with mcpkit's servers, and mcpkit's client with their
# servers, over each transport and protocol version that both support, logins included.
#
# usage: internal/interop/run.sh [WORD...]    runs only the rows that contain all the words, such as `go-sdk http modern` or `mcpkit stdio`
#   CI=true                          fails if npm is missing; otherwise the script prints a warning and runs nothing
#
# The logs of the servers are in .cache/interop/bin/logs. See docs/howto/run-interop.md.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(dirname "$(dirname "$here")")
cache=$root/.cache/interop

say() { printf 'interop: %s\n' "$*"; }
die() { say "$*" >&2; exit 1; }

# require_npm exits if npm is missing: with code 1 in CI, elsewhere with code 0.
require_npm() {
	command -v npm >/dev/null && return
	[ "${CI:-}" = true ] && die "npm is not installed, and CI must run the clients"
	cat >&2 <<-'END'

		  ************************************************************************
		  **  INTEROPERABILITY WAS NOT TESTED: npm is not installed.            **
		  **  Install npm, then run `make interop`.                             **
		  ************************************************************************

	END
	exit 0
}

# install installs the packages that package-lock.json pins into the cache. It copies the scripts
# there, too, because Node.js looks for packages beside the script.
install() {
	if ! cmp -s "$here/package-lock.json" "$cache/installed-lock.json"; then
		say "installing the clients"
		rm -rf "$cache"
		mkdir -p "$cache"
		cp "$here/package.json" "$here/package-lock.json" "$cache/"
		npm ci --prefix "$cache" --ignore-scripts --no-audit --no-fund --loglevel=error || die "npm could not install the clients"
		cp "$cache/package-lock.json" "$cache/installed-lock.json"
	fi
	rm -rf "$cache/ts" "$cache/"*.mjs
	cp -r "$here/ts" "$here/run.mjs" "$here/servers.mjs" "$here/cli.mjs" "$here/watch.sh" "$cache/"
	PATH=$cache/node_modules/.bin:$PATH # on linux-x64 it contains the pinned Node.js
	local version
	version=$(node -p 'process.versions.node') || die "node does not run"
	[ "$(printf '22.19.0\n%s\n' "$version" | sort -V | head -n 1)" = 22.19.0 ] || die "the clients need Node.js 22.19 or newer; this one is $version"
}

build() {
	mkdir -p "$cache/bin"
	(cd "$root" && go build -o "$cache/bin/server" ./internal/conformance/server && go build -o "$cache/bin/notes" ./examples/notes &&
		go build -o "$cache/bin/diary" ./examples/diary && go build -o "$cache/bin/board" ./examples/board &&
		go build -o "$cache/bin/login" ./internal/interop/login &&
		go build -o "$cache/bin/mcpkit" ./cmd/mcpkit &&
		go build -o "$cache/bin/client" ./internal/interop/client)
	(cd "$root/examples/fleet" && go build -o "$cache/bin/fleet" .)
	(cd "$here/gosdk" && go build -o "$cache/bin/gosdk" .)
	(cd "$here/mcpgo" && go build -o "$cache/bin/mcpgo" .)
}

require_npm
install
build
node "$cache/run.mjs" "$cache/bin" "$@" || die "failed"
if [ $# -eq 0 ]; then
	node "$cache/cli.mjs" "$cache/bin" || die "failed"
fi
say "passed"
