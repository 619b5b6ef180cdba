#!/bin/sh
# again.sh FOLDER FLAG...: after a run of tests that failed, tries what failed once more,
# each test alone, with these flags of go test. It is asked for by OPENSKILL_TEST_AGAIN, at
# most so many tests; more than that are no chance, nor are a panic and a data race. What
# passes then is counted as passed, and named as flaky in FOLDER/flaky, for it is a fault of
# the test still. Fails where something failed twice, or nothing says what failed.
set -eu
out=$1
shift
most=${OPENSKILL_TEST_AGAIN:-0}
n=$(wc -l <"$out/failures")
if [ "$n" -eq 0 ] || [ "$n" -gt "$most" ]; then
	exit 1
fi
if grep -qv ' ' "$out/failures" || grep -qE 'WARNING: DATA RACE|"Output":"(panic|fatal error): ' "$out/tests"; then
	exit 1
fi
while read -r pkg test; do
	echo "== again: $pkg $test"
	case $pkg in openskill/lab/*) module=lab ;; *) module=. ;; esac
	"${GO:-go}" -C $module test -json -count=1 -timeout 30m "$@" -run "^$test\$" "$pkg" >"$out/again" </dev/null || most=0
	"$out/count" <"$out/again"
	[ "$most" != 0 ] || exit 1
	echo "flaky: $pkg $test failed once, and passed when run again alone" >>"$out/flaky"
done <"$out/failures"
counted=$(tail -n 1 "$out/counts" | awk '{print $2, -$2, 0}')
echo "$counted" >>"$out/counts"
