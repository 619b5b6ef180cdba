#!/bin/sh
# Makes everything twice, from two clones of this commit in two folders, and compares
# each byte: what is published can be made again by anybody.
set -eu
repo=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for n in one another/folder; do
	mkdir -p "$work/$n"
	git clone -q "$repo" "$work/$n/openskill"
	(cd "$work/$n/openskill" && scripts/dist.sh >"$work/log" 2>&1) || { cat "$work/log" >&2; exit 1; }
done
cd "$work"
diff -r one/openskill/dist another/folder/openskill/dist
echo "the same bytes from two folders:"
cat one/openskill/dist/SHA256SUMS
