#!/usr/bin/env bash
fruits=(apple "banana split" cherry)
fruits+=(date)
echo "${#fruits[@]} ${fruits[1]} ${fruits[-1]}"
for f in "${fruits[@]}"; do printf '<%s>' "$f"; done; echo
echo "${fruits[@]:1:2}"
unset 'fruits[0]'
echo "${!fruits[@]}"
declare -A age=([ann]=31 [bob]=27)
age[cy]=40
for k in $(printf '%s\n' "${!age[@]}" | sort); do echo "$k=${age[$k]}"; done
[[ -v age[bob] ]] && echo has bob
[[ -v age[dan] ]] || echo no dan
copy=("${fruits[@]}")
echo "${copy[*]}"
join() { local out=$1; shift; for i; do out+=,$i; done; echo "$out"; }; join "${copy[@]}"
sorted=($(printf '%s\n' 3 1 2 | sort -n)); echo "${sorted[@]}"
read -r -a words <<< "one two  three"; echo "${#words[@]}:${words[2]}"
