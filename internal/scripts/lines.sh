#!/usr/bin/env bash
# Measures the library: lines of code, files, exported names, the largest structs.
# usage: internal/scripts/lines.sh [DIR]    DIR is another work tree, by default this one
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
dir=$(cd "${1:-$here}" && pwd)
cd "$here"
go run ./internal/scripts/lines "$dir"
