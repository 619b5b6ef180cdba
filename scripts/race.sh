#!/bin/sh
# Runs the packages where goroutines meet under the race detector, which needs a C
# compiler. What it makes slow and learns nothing from, one guest at a time on a large
# module, is left out by -short. Prints the counts last.
set -eu
cd "$(dirname "$0")/.."
go=${GO:-go}
if ! { [ "$("$go" env CGO_ENABLED)" = 1 ] && command -v "$("$go" env CC)" >/dev/null 2>&1; }; then
	echo "race detector: left out, it needs a C compiler"
	exit 0
fi
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
status=0
"$go" build -o "$out/count" ./scripts/count

# A package whose code starts goroutines or holds locks belongs into this list, and a
# test in it that only compiles and runs one guest is skipped by testing.Short.
race="./cmd/openskill/internal/watch ./host/admission/... ./host/agent/... ./host/api/... ./host/app ./host/app/metrics ./host/catalogue ./host/console
	./host/dispatch ./host/dispatch/quota ./host/identity ./host/internal/gate ./host/internal/table ./host/internal/tracing ./host/mcp ./host/records ./host/selftest
	./host/workers/... ./plugins/all ./plugins/cli ./plugins/extism ./plugins/javascript ./plugins/python ./plugins/remote ./plugins/wasi/... ./sdk/client ./wasm"
began=$(date +%s)
"$go" test -json -short -race -vet=off -ldflags='-s -w' -timeout 30m $race >"$out/tests" 2>"$out/tests.err" || status=1
cat "$out/tests.err"
"$out/count" <"$out/tests"
echo "race detector: $(($(date +%s) - began)) s"
exit "$status"
