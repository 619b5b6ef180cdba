#!/usr/bin/env bash
add() { local a=$1 b=$2; echo $((a + b)); }
echo "$(add 2 3)"
fact() { if (($1 < 2)); then echo 1; else echo $(($1 * $(fact $(($1 - 1))))); fi; }
fact 12
down() { if (($1 == 0)); then echo bottom; else down $(($1 - 1)); fi; }
down 200
fib() { local n=$1; ((n < 2)) && { r=$n; return; }; fib $((n - 1)); local x=$r; fib $((n - 2)); r=$((r + x)); }
fib 12; echo $r
status() { return 7; }; status; echo $?
scope=global; change() { local scope=inner; nested; }; nested() { echo $scope; scope=changed; }
change; echo $scope
by_name() { local -n out=$1; out=filled; }; by_name target; echo $target
args() { echo "$# [$1] [$2]"; }; args "a b" c
declare -f status >/dev/null && echo declared
unset -f status; type status >/dev/null 2>&1 || echo gone
echo "${FUNCNAME[0]:-main}"
show() { echo "${FUNCNAME[0]} from ${FUNCNAME[1]}"; }; show
