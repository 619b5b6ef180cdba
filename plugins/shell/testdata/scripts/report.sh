#!/usr/bin/env bash
set -e
printf 'date,region,amount\n2024-01-01,north,10.5\n2024-01-02,south,3\n2024-02-01,north,7.25\n' > s.csv
echo "# Report"
tail -n +2 s.csv | awk -F, '{m = substr($1, 1, 7); t[m] += $3; n++} END {for (k in t) printf "%s\t%.2f\n", k, t[k]; print n " rows" > "/dev/stderr"}' 2> n | sort | while IFS=$'\t' read -r m t; do printf '| %-8s | %8s |\n' "$m" "$t"; done
cat n
total=$(cut -d, -f3 s.csv | tail -n +2 | paste -sd+ | bc)
printf 'total: %s\n' "$total"
jq -Rsc 'split("\n")[1:-1] | map(split(",") | {region: .[1], amount: (.[2] | tonumber)}) | group_by(.region) | map({(.[0].region): (map(.amount) | add)}) | add' s.csv
printf '%s' "$(<s.csv)" | tr , '\t' | column -t -s $'\t'
rm s.csv n
