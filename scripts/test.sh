#!/bin/sh
# Runs all tests, and beside them the property-based HTTP client. Prints what each part took, and
# the counts last. CI runs scripts/race.sh as well.
set -eu
cd "$(dirname "$0")/.."
go=${GO:-go}
# As make run builds: what both compile is then compiled once.
export CGO_ENABLED=0 GOFLAGS="${GOFLAGS-} -trimpath"
state=${OPENSKILL_STATE_DIR:-.openskill}
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
trap '[ -z "${client-}" ] || kill "$client" 2>/dev/null; exit 130' INT TERM
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
"$go" -C lab vet ./... || status=1
"$go" build -o "$out/count" ./scripts/count

# Beside the tests, many of which wait for deadlines: it keeps one processor busy for a
# minute, and the tests do not keep both busy all the time. CI has it make more requests.
scripts/schemathesis.sh --max-examples "${OPENSKILL_TEST_EXAMPLES:-30}" >"$out/http" 2>&1 &
client=$!

# One package more at once than there are cores, for the same reason. Vetted
# they are already; and nobody debugs these binaries, which link sooner without what
# debuggers read.
part tests
failed=0
"$go" test -p "$(($(getconf _NPROCESSORS_ONLN) + 1))" -json -vet=off -ldflags=-w -timeout 30m ./... >"$out/tests" 2>"$out/tests.err" || failed=1
"$go" -C lab test -json -vet=off -ldflags=-w -timeout 30m ./... >>"$out/tests" 2>>"$out/tests.err" || failed=1
cat "$out/tests.err"
"$out/count" -counts "$out/counts" -failures "$out/failures" <"$out/tests"
[ "$failed" = 0 ] || GO="$go" scripts/again.sh "$out" -vet=off -ldflags=-w || status=1

part "property-based HTTP client, as far as it was not done beside"
wait "$client" || { status=1; cat "$out/http"; }
client=
tail -n 3 "$out/http"

part "all tests"
cat "$out/times"
echo "all: $(($(date +%s) - began)) s"
[ ! -f "$out/flaky" ] || cat "$out/flaky"
cat "$out/counts" | awk '{p+=$1; f+=$2; s+=$3} END {printf "%d passed, %d failed, %d skipped\n", p, f, s}'
exit "$status"
