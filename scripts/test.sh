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
trap 'kill ${client-} ${lab-} 2>/dev/null; exit 130' INT TERM
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

"$go" build -o "$out/count" ./scripts/count

# Beside the tests, many of which wait for deadlines: it keeps one processor busy for a
# minute, and the tests do not keep both busy all the time.
scripts/schemathesis.sh --max-examples "${OPENSKILL_TEST_EXAMPLES:-30}" >"$out/http" 2>&1 &
client=$!

# What the runtimes are compiled to is the same for all tests, and packages that begin at once
# would compile it each: hosts in tests take it from testing/modules, engines from cache/wasm
# (with guard pages what was metered alone, since code that relies on them has a key of its own).
part "compiled runtimes"
mkdir -p -m 0700 "$state/runtimes" "$state/testing" "$state/testing/modules" "$state/cache" "$state/cache/wasm" "$out/state" "$out/each" "$out/each/scripts"
ln -s "$(cd "$state/runtimes" && pwd)" "$out/state/runtimes"
ln -s "$(cd "$state/testing/modules" && pwd)" "$out/state/modules"
printf -- '---\nname: each\ndescription: One script of each language.\n---\n' >"$out/each/SKILL.md"
for script in py js sh; do
	: >"$out/each/scripts/empty.$script"
	bin/openskill script --state "$out/state" "$out/each" "empty.$script" >"$out/compiled" 2>&1 || cat "$out/compiled"
done
[ ! -f "$python" ] || bin/openskill runtime install python-3.12 --state "$out/state" >"$out/compiled" 2>&1 || cat "$out/compiled"
for module in "$state"/testing/modules/*/*-trusted; do
	[ ! -d "$module" ] || cp -Rln "$module/code" "$module/metered" "$state/cache/wasm/"
done

# The packages that take longest begin first, and one more runs at once than there are cores,
# since many of their tests wait; those of lab, which are short, run beside them. make lint
# vets; nobody debugs these binaries, which link sooner without what debuggers read.
part tests
longest="./cmd/openskill ./plugins/python ./docs ./host/app ./wasm ./plugins/all ./wasm/meter ./plugins/cli ./host/store"
"$go" -C lab test -p 1 -json -vet=off -ldflags='-s -w' -timeout 30m ./... >"$out/lab" 2>"$out/lab.err" &
lab=$!
"$go" test -p "$(($(getconf _NPROCESSORS_ONLN) + 1))" -json -vet=off -ldflags='-s -w' -timeout 30m $longest ./... >"$out/tests" 2>"$out/tests.err" || status=1
wait "$lab" || status=1
lab=
cat "$out/tests.err" "$out/lab.err"
cat "$out/tests" "$out/lab" | "$out/count" | tee "$out/counted"

part "property-based HTTP client, as far as it was not done beside"
wait "$client" || { status=1; cat "$out/http"; }
client=
tail -n 3 "$out/http"

part "all tests"
cat "$out/times"
echo "all: $(($(date +%s) - began)) s"
tail -n 1 "$out/counted"
exit "$status"
