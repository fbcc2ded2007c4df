#!/usr/bin/env bash
# Runs each fuzz target for TIME, by default 10s. usage: internal/scripts/fuzz.sh [TIME]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

time=${1:-10s}
git grep -o '^func Fuzz[A-Za-z0-9_]*' -- '*_test.go' | while IFS=: read -r file target; do
	target=${target#func }
	echo "fuzz $(dirname "$file") $target"
	go test -run '^$' -fuzz "^$target\$" -fuzztime "$time" "./$(dirname "$file")" </dev/null
done
