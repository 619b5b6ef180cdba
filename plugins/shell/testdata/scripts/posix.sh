#!/bin/sh
set -eu
x=${1:-none}
[ "$x" = none ] && echo "no argument"
i=0
while [ "$i" -lt 3 ]; do i=$((i + 1)); printf '%s ' "$i"; done; echo
for f in a b; do case "$f" in a) echo first ;; *) echo other ;; esac; done
set -- p q r; echo "$#"; for a; do printf '%s;' "$a"; done; echo
until [ "$i" -eq 0 ]; do i=$((i - 1)); done; echo "$i"
cmd="echo built"; $cmd
out=$(printf 'a b\n' | { read -r p q; echo "$q $p"; }); echo "$out"
test -d . && test ! -f nothing && echo tests
: "${VAR:=fallback}"; echo "$VAR"
unset VAR; echo "${VAR+set}${VAR-unset}"
if command -v definitely_not_there >/dev/null 2>&1; then echo there; else echo missing; fi
definitely_not_there 2>/dev/null || echo "rc $?"
f() { echo "in $1"; return 5; }; f x || echo "f $?"
expr 3 + 4; expr length hello
printf '%s\n' "a\tb" 'c\td'; printf 'x\ty\n'
kill -0 $$ && echo alive
echo "$(basename "$0")"
