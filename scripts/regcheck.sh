#!/bin/sh
# regcheck.sh [PROGRAMS]: checks the registers in all that wazero's compilers make of
# modules, as the engine hands them over (lab/regcheck): for amd64 the runtimes, skills and
# plug-ins that are there, and PROGRAMS generated ones (300,000), half of them with more
# values than registers, half of those in calls that pass many on the stack; a thirtieth as
# for processors without some instructions; for arm64 the modules, and a tenth as many programs;
# and all kinds once more by allocators that have three or ten registers of a kind. It takes two processors.
set -u
cd "$(dirname "$0")/.." || exit 2
go=${GO:-go}
state=${OPENSKILL_STATE_DIR:-.openskill}
programs=${1:-300000}
few=$((programs / 30))
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
for arch in amd64 arm64; do
	"$go" -C lab run ./regcheck -arch $arch -build "$work/$arch" || exit 2
done
"$go" -C lab run ./regcheck -arch amd64 -few 3 -build "$work/amd64-few" || exit 2
"$go" -C lab run ./regcheck -arch arm64 -few 10 -build "$work/arm64-few" || exit 2
quickjs=$("$go" list -m -f '{{.Dir}}' github.com/paralin/go-quickjs-wasi) || exit 2
extism=$("$go" -C lab list -m -f '{{.Dir}}' github.com/extism/go-sdk) || exit 2

# check TITLE ARCH ARGUMENT...: one line of what was looked at, after the faults.
check() {
	title=$1 arch=$2
	shift 2
	case $arch in amd64*) set -- -guarded "$@" ;; esac # as for worker processes
	"$work/$arch" "$@" || bad=1
	echo "  $arch, $title"
}

files() { # ARCH
	check runtimes "$1" -trusted "$state"/runtimes/*/python.wasm "$quickjs"/*.wasm
	check 'skills, plug-ins' "$1" skills/*/*.wasm "$state"/bench/*.wasm "$extism"/wasm/*.wasm
}

generated() { # ARCH GENERATOR COUNT
	check "generated $2" "$1" -generate "$2" -count "$3"
}

computing() {
	bad=0
	files arm64
	generated arm64 pressure $((few * 3 / 2))
	generated arm64 calls $((few * 3 / 2))
	files arm64-few
	for generator in arithmetic pressure calls; do
		generated arm64-few $generator $((few / 2))
	done
	generated amd64 arithmetic $((programs / 6))
	generated amd64 program $((programs / 6))
	generated amd64 addresses $((programs / 6))
	return $bad
}

pressed() {
	bad=0
	files amd64
	files amd64-few
	check 'runtimes with checks' amd64 -guarded=false -trusted "$state"/runtimes/*/python.wasm "$quickjs"/*.wasm
	check 'generated pressure with checks' amd64-few -guarded=false -generate pressure -count $((few / 2))
	for generator in arithmetic pressure calls program; do
		generated amd64-few $generator $few
	done
	generated amd64 pressure $((programs / 4))
	generated amd64 calls $((programs / 4))
	for feature in bmi1 popcnt sse41; do
		echo "without $feature:"
		GODEBUG=cpu.$feature=off generated amd64 pressure $((few / 3))
	done
	return $bad
}

status=0
computing >"$work/computing" 2>&1 &
other=$!
pressed 2>&1 || status=1
wait $other || status=1
cat "$work/computing"
exit $status
