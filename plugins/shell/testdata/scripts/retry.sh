#!/usr/bin/env bash
set -uo pipefail
tries=0
flaky() { tries=$((tries + 1)); [ $tries -ge 3 ]; }
retry() { local max=$1 n=1; shift; until "$@"; do ((n >= max)) && { echo "gave up after $n"; return 1; }; echo "try $n failed"; n=$((n + 1)); sleep 0.01; done; echo "done on $n"; }
retry 5 flaky
tries=-100; retry 2 flaky || echo "rc $?"
log() { local level=$1; shift; printf '[%s] %s\n' "$level" "$*" >&2; }
log INFO hidden 2>/dev/null; log WARN shown 2>&1
die() { echo "fatal: $*"; exit 9; }
( die inner ); echo "sub $?"
die outer
