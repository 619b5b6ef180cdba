#!/bin/sh
# templ-check.sh: holds the generated code of the console's pages against their templates.
set -eu

cd "$(dirname "$0")/.."
made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT
cp host/console/*.templ "$made/"
GOWORK=off "${GO:-go}" tool -modfile=tools/go.mod templ generate -path "$made" >"$made/log" 2>&1 || { cat "$made/log" >&2; exit 1; }
for page in "$made"/*.templ; do
	name=$(basename "${page%.templ}")_templ.go
	if ! cmp -s "$made/$name" "host/console/$name"; then
		echo "host/console/$name is stale; run go generate ./host/console" >&2
		exit 1
	fi
done
