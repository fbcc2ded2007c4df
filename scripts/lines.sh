#!/usr/bin/env bash
# Measures the library: lines of code, files, exported names, the largest structs.
# usage: scripts/lines.sh [DIR]    DIR is another work tree, by default this one
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
dir=$(cd "${1:-$here}" && pwd)
cd "$here"
go run ./scripts/lines "$dir"
