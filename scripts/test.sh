#!/bin/sh
# Runs all tests, then the packages where goroutines meet once more under the race
# detector, then the property-based HTTP client. Prints what each part took, and the
# counts last.
set -eu
cd "$(dirname "$0")/.."
go=${GO:-go}
state=${OPENSKILL_STATE_DIR:-.openskill}
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
status=0
began=$(date +%s)
part() { # WHAT: begins a part, and says what the one before took
	now=$(date +%s)
	[ -z "${name-}" ] || echo "$name: $((now - since)) s" >>"$out/times"
	name=$1 since=$now
	echo "== $1"
}
python=$(pwd)/$state/runtimes/python-3.12/python.wasm
[ ! -f "$python" ] || export OPENSKILL_TEST_PYTHON="$python"

part vet
"$go" vet ./... || status=1
"$go" build -o "$out/count" ./scripts/count

# Vetted already; and nobody debugs these binaries, which link sooner without what
# debuggers read.
part tests
"$go" test -json -vet=off -ldflags=-w -timeout 30m ./... >"$out/tests" 2>"$out/tests.err" || status=1
cat "$out/tests.err"
"$out/count" -counts "$out/counts" <"$out/tests"

# A package whose code starts goroutines or holds locks belongs into this list, and a
# test in it that only compiles and runs one guest is skipped by testing.Short.
race="./host ./host/dispatch ./host/egress ./host/httpapi/... ./host/quarantine ./host/runner ./host/selftest
	./host/upload ./host/versions ./host/worker ./plugins/all ./plugins/cli ./plugins/javascript ./plugins/python
	./plugins/wasi/... ./wasm"
part "race detector"
if [ "$("$go" env CGO_ENABLED)" = 1 ] && command -v "$("$go" env CC)" >/dev/null 2>&1; then
	"$go" test -json -short -race -vet=off -ldflags=-w -timeout 30m $race >"$out/race" 2>"$out/race.err" || status=1
	cat "$out/race.err"
	"$out/count" -counts "$out/counts" <"$out/race"
else
	echo "left out, it needs a C compiler"
fi

part "property-based HTTP client"
scripts/schemathesis.sh >"$out/http" 2>&1 || { status=1; cat "$out/http"; }
tail -n 3 "$out/http"

part "all tests"
cat "$out/times"
echo "all: $(($(date +%s) - began)) s"
cat "$out/counts" | awk '{p+=$1; f+=$2; s+=$3} END {printf "%d passed, %d failed, %d skipped\n", p, f, s}'
exit "$status"
