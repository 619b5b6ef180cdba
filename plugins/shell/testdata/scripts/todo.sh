#!/usr/bin/env bash
set -euo pipefail
FILE=todo.txt; : > "$FILE"
add() { echo "[ ] $*" >> "$FILE"; }
finish() { sed -i "$1s/\[ \]/[x]/" "$FILE"; }
list() { nl -ba -w2 -s'. ' "$FILE"; }
add buy milk; add "write code"; add rest
finish 2; list
echo "open: $(grep -c '^\[ \]' "$FILE")"
awk '/\[x\]/ {d++} END {printf "%d%%\n", d * 100 / NR}' "$FILE"
sort -k3 "$FILE" | cut -c5-
rm "$FILE"
