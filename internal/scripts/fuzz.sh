#!/usr/bin/env bash
# Runs each fuzz target for TIME, by default 10s. usage: internal/scripts/fuzz.sh [TIME]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

time=${1:-10s}
go list ./... | while read -r package; do
	go test -list '^Fuzz' "$package" | { grep '^Fuzz' || true; } | while read -r target; do
		echo "fuzz $package $target"
		go test -run '^$' -fuzz "^$target\$" -fuzztime "$time" "$package" </dev/null
	done
done
