#!/bin/bash
printf '%s\n' 10 9 2 33 1 | sort
printf '%s\n' 10 9 2 33 1 | sort -n | xargs
printf '%s\n' b a c a | sort -u | xargs
printf '%s\n' b a c a b a | sort | uniq -c | sort -k1,1nr -k2 | awk '{print $1, $2}'
printf 'x 3\ny 1\nz 2\n' | sort -k2,2n
printf 'a:3\nb:1\n' | sort -t: -k2 -r
printf '%s\n' 1K 2M 500 | sort -h
printf '%s\n' v1.10 v1.9 v1.2 | sort -V
printf 'B\na\nC\n' | sort -f
printf '%s\n' a a b | uniq -d; printf '%s\n' a a b | uniq -u
printf 'c\nb\na\n' | sort -c 2>/dev/null || echo unsorted
printf 'k1\tv1\nk2\tv2\n' | cut -f2
echo a,b,c,d | cut -d, -f1,3-
echo abcdef | cut -c2-4
printf '1\n2\n3\n4\n' | paste - -
printf 'a\nb\n' | nl | awk '{print $1 $2}'
printf 'b\na\n' | shuf | sort
printf 'one two\n' | fold -w 4
printf 'a b\nccc dd\n' | column -t
wc -w <<< "some words here"
