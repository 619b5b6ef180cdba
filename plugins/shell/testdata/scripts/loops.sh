#!/bin/bash
for i in 1 2 3 4 5; do [ $i = 2 ] && continue; [ $i = 5 ] && break; echo -n "$i "; done; echo
for a in 1 2; do for b in x y; do [ $a$b = 2x ] && break 2; echo -n "$a$b "; done; done; echo
i=0; while :; do ((++i > 4)) && break; done; echo $i
until ((i == 0)); do ((i--)); done; echo $i
n=0; while ((n < 20000)); do ((n++)); done; echo $n
while read -r l; do echo "$l"; done < <(seq 2)
for ((;;)); do break; done; echo out
case x in a) echo a ;; x) echo x ;& y) echo fell ;; esac
case ab in a*) echo one ;;& *b) echo two ;; esac
shopt -s extglob
case foobar in foo+(b|a|r)) echo ext ;; esac
for f in {a,b}{1,2}; do echo -n "$f "; done; echo
s=; for w in the quick brown; do s+="${s:+-}$w"; done; echo $s
time (true) 2>/dev/null; echo timed
