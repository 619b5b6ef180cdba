#!/usr/bin/env bash
cat > sales <<'EOF'
ann north 10
bob south 20
ann south 5
cy north 7
EOF
awk '{print $1, $3 * 2}' sales
awk '{t[$1] += $3} END {for (n in t) print n, t[n]}' sales | sort
awk -F: '{print $2}' <<< a:b:c
awk 'NR==2, NR==3 {print NR": "$0}' sales
awk '$3 > 6 && /north/ {c++} END {print c+0}' sales
awk -v limit=10 '$3 >= limit {print $1}' sales
awk 'BEGIN {OFS="-"} {$1=$1; print}' sales | head -1
awk '{printf "%-5s|%5d|%.2f\n", $1, $3, $3/3}' sales
awk 'BEGIN {print length("hello"), substr("hello", 2, 3), index("hello", "l"), toupper("x"), sprintf("%03d", 7)}'
awk 'BEGIN {n = split("a,b,c", p, ","); print n, p[3]; s = "aXbX"; gsub(/X/, "-", s); print s; print match("foobar", /o+/), RSTART, RLENGTH}'
awk 'BEGIN {while (i < 3) {i++; if (i == 2) continue; printf "%d ", i}; print ""}'
awk 'function sq(x) {return x * x} {s += sq($3)} END {print s}' sales
awk 'NF' <<< $'a\n\nb'
awk 'END {print NR, $0}' sales
awk '!seen[$2]++ {print $2}' sales
echo "3 4" | awk '{print sqrt($1 * $1 + $2 * $2), int(7.9), 7 % 3, 2 ^ 8}'
awk 'BEGIN {printf "%s %s\n", "a" "b", 1 == 1.0}'
rm sales
