#!/usr/bin/env bash
# Runs the generators. Fails and names the files if the generators changed, created or removed any.
# Uncommitted changes are allowed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

# sums prints the hash and the name of each file, one file on a line.
sums() {
	local files
	files=$(git ls-files --cached --others --exclude-standard | sort -u | while IFS= read -r file; do
		if [ -f "$file" ]; then printf '%s\n' "$file"; fi
	done)
	paste -d' ' <(git hash-object --no-filters --stdin-paths <<<"$files") - <<<"$files"
}

before=$(sums)
go generate ./...
after=$(sums)
[ "$before" != "$after" ] || exit 0

echo "generated files are stale; run make generate and commit:" >&2
diff <(printf '%s\n' "$before") <(printf '%s\n' "$after") | sed -n 's/^[<>] [0-9a-f]* /  /p' | sort -u >&2
exit 1
