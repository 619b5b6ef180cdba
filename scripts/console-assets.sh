#!/bin/sh
# console-assets.sh DIR: puts the files of htmx and uPlot that the console embeds into DIR,
# by npm, pinned with their hashes. Where they cannot be had a line says so, and the console
# works without them, by forms alone.
set -eu

dir=$1
pins=scripts/console-assets
want() { (cd "$1" && sha256sum -c --status "$2"); }
sums=$(cd "$pins" && pwd)/sha256
! want "$dir" "$sums" 2>/dev/null || exit 0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp "$pins/package.json" "$pins/package-lock.json" "$work/"
if command -v npm >/dev/null 2>&1 && npm ci --prefix "$work" --ignore-scripts --no-audit --no-fund --silent &&
	mkdir "$work/files" && for f in htmx.org/dist/htmx.min.js uplot/dist/uPlot.iife.min.js uplot/dist/uPlot.min.css; do
		cp "$work/node_modules/$f" "$work/files/"
	done && want "$work/files" "$sums"; then
	for f in "$work"/files/*; do
		cp "$f" "$dir/.new-$$" # renamed whole: two may be at work at once
		mv "$dir/.new-$$" "$dir/$(basename "$f")"
	done
else
	echo "console-assets: no htmx and uPlot: npm could not install them; the console works without, by forms alone" >&2
fi
