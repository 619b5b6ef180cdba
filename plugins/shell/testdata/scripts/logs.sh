#!/bin/bash
set -euo pipefail
for i in $(seq 1 300); do printf '10.0.0.%d - - "GET /p%d HTTP/1.1" %d %d\n' $((i % 7)) $((i % 5)) $((i % 10 == 0 ? 500 : 200)) $((i * 13 % 997)); done > access.log
wc -l < access.log
awk '{print $1}' access.log | sort | uniq -c | sort -rn -k1,1 -k2,2 | head -3 | awk '{print $2": "$1}'
grep -c '" 500 ' access.log
awk '{bytes += $NF} END {printf "%d bytes, %.1f avg\n", bytes, bytes / NR}' access.log
sed -n 's/.*"GET \([^ ]*\) .*/\1/p' access.log | sort | uniq -c | sort -k2 | awk '{print $2, $1}'
split -l 100 access.log chunk.; for c in chunk.*; do echo "$c $(wc -l < $c)"; done
tail -1 access.log | tr -d '"' | cut -d' ' -f5
rm access.log chunk.*
