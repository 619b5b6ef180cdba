#!/bin/bash
x=1; (x=2; echo $x); echo $x
(cd /; pwd); { y=3; }; echo $y
echo $BASH_SUBSHELL $(echo $BASH_SUBSHELL)
(exit 4); echo $?
sleep 0.05 & p=$!; wait $p; echo "waited $?"
for i in 1 2 3; do (sleep 0.0$i; echo job $i) & done; wait
f() { (return 3); echo $?; }; f
export E=exported; N=not; bash -c 'echo "[$E] [$N] $0 $1"' zero one
sh -c 'echo $#' a b c
env V=1 bash -c 'echo $V'
bash <<< 'echo from stdin'
eval 'echo evaluated'
printf 'echo sourced; z=9\n' > lib.sh; . ./lib.sh; echo $z; rm lib.sh
command echo plain; builtin echo builtin
type -t echo if f
time_out() { timeout 1 echo in time; }; time_out
timeout 0.1 sleep 5; echo "rc $?"
