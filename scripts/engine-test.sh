#!/bin/sh
# engine-test.sh STATE: runs the tests of wazero itself, with those of WebAssembly's
# specification, on the copy with the edits of wasm/edits that this project is built with. Left
# out are six that pin the text of what the edits change.
# `make long PARTS="programs regcheck"` compares what it compiles with the interpreter.
set -u
state=$(cd "$1" && pwd) || exit 2
cd "$(dirname "$0")/.." || exit 2
go=${GO:-go}
copy=$("$go" list -m -f '{{.Dir}}' github.com/tetratelabs/wazero) || exit 2
case $copy in "$state"/engine/*) ;; *)
	echo "engine-test: the project is built with wazero as it is; run make engine first" >&2
	exit 2
	;;
esac
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
"$go" build -o "$out/count" ./scripts/count || exit 2
status=0
pinned='^TestCompiler_LowerToSSA$/^(memory_store_basic|memory_load_basic|memory_load_basic2|memory_loads|bounds_check_in_if-else|bounds_check_in_loop_with_if-else)$'
(cd "$copy" && GOWORK=off CGO_ENABLED=0 "$go" test -json -vet=off -ldflags=-w -timeout 60m -skip "$pinned" \
	. ./api/... ./experimental/... ./imports/... ./internal/...) >"$out/tests" 2>"$out/err" || status=1
cat "$out/err"
"$out/count" <"$out/tests"
exit $status
