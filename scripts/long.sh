#!/bin/sh
# long.sh [PART]...: runs what `make test` and CI leave out because it takes long, a part
# after the other, or the parts that are named. A line a part says whether it held, and how
# long that took; what it printed is kept in the folder long of the state folder. Whatever a
# part needs and does not find is said by the tests that it skips, which are counted.
# TIME is for how long each fuzz target runs, KILLS how often a host is killed.
set -u
cd "$(dirname "$0")/.." || exit 1
go=${GO:-go}
state=${OPENSKILL_STATE_DIR:-.openskill}
kills=${KILLS:-200}
mkdir -p "$state/long" || exit 1
count=$state/long/count
"$go" build -o "$count" ./scripts/count || exit 1
export GOFLAGS="${GOFLAGS:+$GOFLAGS }-count=1"
status=0

# tests PART FLAG...: a part that is go test.
tests() {
	name=$1
	shift
	began=$(date +%s)
	"$go" test -json -timeout 60m "$@" >"$state/long/$name.json" 2>"$state/long/$name.err"
	ended=$?
	"$count" <"$state/long/$name.json" >"$state/long/$name.log" 2>&1
	cat "$state/long/$name.err" >>"$state/long/$name.log"
	told "$name" $ended "$(tail -n 1 "$state/long/$name.log")"
}

told() { # PART STATUS TEXT
	[ "$2" = 0 ] && verdict=ok || { verdict=FAILED; status=1; }
	printf '%-12s %-6s %5s s  %s\n' "$1" "$verdict" "$(($(date +%s) - began))" "$3"
	[ "$2" = 0 ] || echo "             see $state/long/$1.log"
}

part() { # PART
	case $1 in
	race)
		if command -v "$("$go" env CC)" >/dev/null 2>&1; then
			CGO_ENABLED=1 tests race -race ./...
		else
			echo "race         left out, it needs a C compiler"
		fi
		;;
	hostile) OPENSKILL_TEST_HOSTILE=1 tests hostile ./cmd/openskill -run '^TestHostileServer$' ;;
	kills) OPENSKILL_KILLS=$kills OPENSKILL_TEST_KILL=1 tests kills ./host/catalogue ./host/workers ./host/records ./cmd/openskill -run Killed ;;
	cpython) OPENSKILL_TEST_CPYTHON=1 tests cpython ./plugins/python/cpythontest ;;
	scripts) OPENSKILL_TEST_SCRIPTS=1 OPENSKILL_TEST_FALLBACK=1 tests scripts ./plugins/python -run 'Tricks|Ends|Chance|Limits' ;;
	community) OPENSKILL_TEST_COMMUNITY=1 tests community ./cmd/openskill/internal/parity/community ;;
	scientific) OPENSKILL_TEST_SCIENTIFIC=1 tests scientific ./plugins/python ./examples/skills -run 'Numpy|Scientific|DeepButHonest' ;;
	programs) OPENSKILL_PASS_SEEDS=15000 OPENSKILL_PASS_FIRST=2000 tests programs ./wasm/passtest ./wasm/tune ./wasm/meter ./wasm/lower -run 'Arithmetic|Pressure|RandomPrograms|RandomTrees|RandomRecursion|TestPrograms' ;;
	mutations) OPENSKILL_MUTATIONS=100000 tests mutations ./host/admission -run Mutat ;;
	fuzz)
		began=$(date +%s)
		GO="$go" scripts/fuzz.sh "${TIME:-10s}" >"$state/long/fuzz.log" 2>&1
		told fuzz $? "$(tail -n 1 "$state/long/fuzz.log")"
		;;
	regcheck)
		began=$(date +%s)
		GO="$go" scripts/regcheck.sh >"$state/long/regcheck.log" 2>&1
		told regcheck $? "$(grep -c '^  a' "$state/long/regcheck.log") sets of modules, $(grep -c ', function ' "$state/long/regcheck.log") faults"
		;;
	threats)
		began=$(date +%s)
		"$go" -C lab run ./mutants >"$state/long/threats.log" 2>&1
		told threats $? "$(grep ' passed, ' "$state/long/threats.log" | tail -n 1)"
		;;
	*)
		echo "$0: no part is called $1; there are: $all" >&2
		exit 2
		;;
	esac
}

all="race hostile kills cpython scripts community scientific programs regcheck mutations threats fuzz"
# shellcheck disable=SC2086 # words
[ $# -gt 0 ] || set -- $all
for one; do part "$one"; done
exit $status
