#!/usr/bin/env bash
# Tests mcpkit with other SDKs: their clients with mcpkit's servers, and mcpkit's client with their
# servers. It installs what package-lock.json pins into .cache/interop, and runs the tests of this
# module. See README.md.
#
# usage: internal/interop/run.sh [WORD...]   with words, only the rows whose names contain all of them, such as `go-sdk http`
#   CI=true                          fails if npm is missing; otherwise only the rows without Node.js run
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=$(dirname "$(dirname "$here")")/.cache/interop
export INTEROP_ROWS
INTEROP_ROWS=$(printf '%s\n' "$@")

if command -v npm >/dev/null; then
	if ! cmp -s "$here/package-lock.json" "$cache/installed-lock.json"; then
		echo "interop: installing the SDKs"
		rm -rf "$cache"
		mkdir -p "$cache"
		cp "$here/package.json" "$here/package-lock.json" "$cache/"
		npm ci --prefix "$cache" --ignore-scripts --no-audit --no-fund --loglevel=error
		cp "$cache/package-lock.json" "$cache/installed-lock.json"
	fi
	# Node.js looks for packages beside the script.
	rm -rf "$cache/ts"
	cp -r "$here/ts" "$cache/ts"
	PATH=$cache/node_modules/.bin:$PATH # on linux-x64 it contains the pinned Node.js
	version=$(node -p 'process.versions.node')
	[ "$(printf '22.19.0\n%s\n' "$version" | sort -V | head -n 1)" = 22.19.0 ] ||
		{ echo "interop: the SDKs need Node.js 22.19 or newer; this one is $version" >&2; exit 1; }
	export INTEROP_NODE=$cache/ts
elif [ "${CI:-}" = true ]; then
	echo "interop: npm is not installed" >&2
	exit 1
else
	echo "interop: npm is not installed, so THE TYPESCRIPT SDKS ARE NOT TESTED" >&2
fi

cd "$here"
if [ $# -gt 0 ]; then
	go test -count 1 -v -timeout 20m .
else
	go test -count 1 -timeout 20m ./...
fi
