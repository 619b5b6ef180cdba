#!/bin/bash
set -- {1..20000}; echo "$# ${20000}"
seq 1 200000 | awk '{s += $1 % 10} END {print NR, s}'
seq 1 250000 | wc -l
seq 5 -2 -3 | tr '\n' ' '; echo
seq -w 8 11 | paste -sd,
seq -s, 0.5 0.5 2
yes | head -n 30000 | wc -l
yes no | head -2
for i in $(seq 3); do echo -n "$i "; done; echo
n=0; for i in {1..12000}; do n=$((n + i)); done; echo $n
