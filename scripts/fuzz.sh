#!/bin/sh
# fuzz.sh TIME: runs every fuzz target for TIME, one after the other. What is found
# is kept by go in testdata/fuzz of the package.
set -eu
cd "$(dirname "$0")/.."
go=${GO:-go}
grep -rlE '^func Fuzz' --include='*_test.go' . | xargs -n1 dirname | sort -u | while read -r dir; do
	for target in $(grep -hoE '^func Fuzz[A-Za-z0-9_]+' "$dir"/*_test.go | sed 's/^func //' | sort -u); do
		echo "== $dir $target"
		"$go" test -run '^$' -fuzz "^$target\$" -fuzztime "$1" -fuzzminimizetime 10x "$dir"
	done
done
