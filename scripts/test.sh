#!/bin/sh
# Runs all tests, then the packages where goroutines meet once more under the race
# detector, then the property-based HTTP client. Prints the counts last.
set -eu
cd "$(dirname "$0")/.."
go=${GO:-go}
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
status=0
python=$(pwd)/${OPENSKILL_STATE_DIR:-.openskill}/runtimes/python-3.12/python.wasm
[ ! -f "$python" ] || export OPENSKILL_TEST_PYTHON="$python"

"$go" vet ./... || status=1
"$go" build -o "$out/count" ./scripts/count

echo "== tests"
"$go" test -json -timeout 30m ./... >"$out/tests" 2>"$out/tests.err" || status=1
cat "$out/tests.err"
"$out/count" -counts "$out/counts" <"$out/tests"

if [ "$("$go" env CGO_ENABLED)" = 1 ] && command -v "$("$go" env CC)" >/dev/null 2>&1; then
	echo "== race detector"
	"$go" test -json -short -race -timeout 30m ./sdk/... ./host/... ./plugins/... ./wasm >"$out/race" 2>"$out/race.err" || status=1
	cat "$out/race.err"
	"$out/count" -counts "$out/counts" <"$out/race"
else
	echo "race detector: left out, it needs a C compiler"
fi

echo "== property-based HTTP client"
scripts/schemathesis.sh >"$out/http" 2>&1 || { status=1; cat "$out/http"; }
tail -n 3 "$out/http"

echo "== all tests"
cat "$out/counts" | awk '{p+=$1; f+=$2; s+=$3} END {printf "%d passed, %d failed, %d skipped\n", p, f, s}'
exit "$status"
