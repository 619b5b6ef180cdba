#!/bin/bash
read -r first; echo "first: $first"
read -r -p "prompt" second; echo "second: $second"
while read -r n; do [[ $n == stop ]] && break; echo "n: $n"; done
head -n 1
