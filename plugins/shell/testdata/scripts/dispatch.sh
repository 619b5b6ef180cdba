#!/usr/bin/env bash
set -eo pipefail
cmd_add() { echo $(($1 + $2)); }
cmd_greet() { echo "Hello, ${1:-stranger}!"; }
cmd_help() { declare -F | awk '/cmd_/ {sub("cmd_", "", $3); print $3}' | sort | xargs; }
dispatch() { local c=${1:-help}; shift || true; if declare -F "cmd_$c" >/dev/null; then "cmd_$c" "$@"; else echo "unknown: $c"; return 64; fi; }
dispatch add 2 3; dispatch greet; dispatch greet Zoë; dispatch; dispatch nope || echo "rc $?"
"$@" 2>/dev/null || true
exit 5
