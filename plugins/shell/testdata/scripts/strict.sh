#!/usr/bin/env bash
set -euo pipefail
echo start
x=$(false || echo recovered); echo "$x"
if ! grep -q nothing /dev/null; then echo not found; fi
(set +e; false; echo survived)
echo "${UNSET:-default}"
set +o pipefail; false | true; echo "no pipefail: $?"
set -o pipefail; if false | true; then :; else echo "pipefail: $?"; fi
trap 'echo "error on the way: $?"' ERR
trap 'echo bye' EXIT
ls /nonexistent 2>/dev/null
echo not reached
