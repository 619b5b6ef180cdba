#!/bin/sh
# fuzz.sh TIME [FOLDER]...: runs every fuzz target for TIME, one after the other, or
# those of some folders. TIME "forever" goes round, a minute each, until it is stopped
# by ^C. A line a target tells what was done; what is found is kept by go in
# testdata/fuzz of the package. FUZZ_PARALLEL is how many processors a target may take.
set -u
cd "$(dirname "$0")/.." || exit 1
go=${GO:-go}
time=${1:-10s}
[ $# -eq 0 ] || shift
[ $# -gt 0 ] || set -- .
rounds=once
if [ "$time" = forever ]; then
	rounds=forever
	time=1m
fi
work=$(mktemp -d) || exit 1
stopped=
trap 'stopped=yes' INT TERM
trap 'rm -rf "$work"' EXIT

grep -rlE '^func Fuzz' --include='*_test.go' "$@" | xargs -n1 dirname | sort -u | while read -r dir; do
	grep -hoE '^func Fuzz[A-Za-z0-9_]+' "$dir"/*_test.go | sort -u | sed "s|^func |./${dir#./} |"
done >"$work/targets"

# fuzz FOLDER TARGET runs one target, and adds a line to the results.
fuzz() {
	printf '%-24s %-18s ' "${1#./}" "$2"
	# In its folder: sdk/go is a module of its own.
	"$go" test -C "$1" -run '^$' -fuzz "^$2\$" -fuzztime "$time" -fuzzminimizetime 10x ${FUZZ_PARALLEL:+-parallel "$FUZZ_PARALLEL"} . >"$work/log" 2>&1
	failed=$?
	found=$(grep -c 'Failing input written to' "$work/log")
	if [ $failed -ne 0 ] && [ "$found" -eq 0 ] && [ -z "$stopped" ]; then
		found=1 # it does not compile, or fails on an input that was kept before
	fi
	executions=$(sed -n 's/.*execs: \([0-9]*\).*/\1/p' "$work/log" | tail -n1)
	inputs=$(sed -n 's/.*new interesting: \([0-9]*\).*/\1/p' "$work/log" | tail -n1)
	echo "$1 $2 ${executions:-0} ${inputs:-0} $found" >>"$work/results"
	echo "${executions:-0} executions, ${inputs:-0} new inputs, $found findings"
	if [ "$found" -gt 0 ]; then
		sed 's/^/    /' "$work/log"
	fi
}

: >"$work/results"
while [ -z "$stopped" ]; do
	while read -r dir target <&3; do
		[ -z "$stopped" ] || break
		fuzz "$dir" "$target"
	done 3<"$work/targets"
	[ "$rounds" = forever ] || break
done

awk '{ n[$1 " " $2] += $3; i[$1 " " $2] += $4; f[$1 " " $2] += $5; all += $3; bad += $5 }
	END {
		if (NR > length(n)) for (t in n) printf "%-43s %d executions, %d new inputs, %d findings\n", t, n[t], i[t], f[t] | "sort"
		close("sort")
		printf "%d targets, %d executions, %d findings\n", length(n), all, bad
		exit (bad > 0)
	}' "$work/results"
