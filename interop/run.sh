#!/usr/bin/env bash
# Calls mcpkit's servers with the clients that others wrote, over stdio and HTTP, in every version that each speaks; has them log in, and
# logs in to a server that others wrote. Calls the servers that others wrote with mcpkit's client.
#
# usage: interop/run.sh [WORD...]    only the rows of the table that have all the words, such as `go-sdk http modern` or `visit stdio`
#   CI=true                          a host without npm fails; elsewhere the clients are left out, loudly
#
# What the servers had to say is left in .cache/interop/bin/logs. docs/howto/run-interop.md tells more.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(dirname "$here")
cache=$root/.cache/interop

say() { printf 'interop: %s\n' "$*"; }
die() { say "$*" >&2; exit 1; }

# require_npm ends the script where there is no npm: with 0 for a developer, with 1 in CI.
require_npm() {
	command -v npm >/dev/null && return
	[ "${CI:-}" = true ] && die "npm is not installed, and in CI the clients may not be left out"
	cat >&2 <<-'END'

		  ************************************************************************
		  **  THE CLIENTS OF OTHERS WERE LEFT OUT: npm is not installed.        **
		  **  Nothing is known of interoperability. Install npm, then run       **
		  **  `make interop`.                                                   **
		  ************************************************************************

	END
	exit 0
}

# install puts the clients, as package-lock.json pins them, into the cache, and this folder's scripts beside them, since
# that is where Node.js looks for packages.
install() {
	if ! cmp -s "$here/package-lock.json" "$cache/installed-lock.json"; then
		say "installing the clients"
		rm -rf "$cache"
		mkdir -p "$cache"
		cp "$here/package.json" "$here/package-lock.json" "$cache/"
		npm ci --prefix "$cache" --ignore-scripts --no-audit --no-fund --loglevel=error || die "npm could not install the clients"
		cp "$cache/package-lock.json" "$cache/installed-lock.json"
	fi
	rm -rf "$cache/ts"
	cp -r "$here/ts" "$here/run.mjs" "$here/inns.mjs" "$here/watch.sh" "$cache/"
	PATH=$cache/node_modules/.bin:$PATH # on linux-x64 this brings the pinned Node.js, too
	local version
	version=$(node -p 'process.versions.node') || die "node does not run"
	[ "$(printf '22.19.0\n%s\n' "$version" | sort -V | head -n 1)" = 22.19.0 ] || die "the clients need Node.js 22.19 or newer; this one is $version"
}

build() {
	mkdir -p "$cache/bin"
	(cd "$root" && go build -o "$cache/bin/server" ./conformance/server && go build -o "$cache/bin/notes" ./examples/notes &&
		go build -o "$cache/bin/diary" ./examples/diary && go build -o "$cache/bin/login" ./interop/login &&
		go build -o "$cache/bin/visitor" ./interop/visitor)
	(cd "$here/gosdk" && go build -o "$cache/bin/goclient" .)
	(cd "$here/mcpgo" && go build -o "$cache/bin/mcpgo" .)
}

require_npm
install
build
node "$cache/run.mjs" "$cache/bin" "$@" || die "failed"
say "passed"
