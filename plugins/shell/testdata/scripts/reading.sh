#!/usr/bin/env bash
printf 'a,b,c\nd,e,f\n' > t.csv
while IFS=, read -r x y z; do echo "$z-$y-$x"; done < t.csv
mapfile -t lines < t.csv; echo "${#lines[@]} ${lines[1]}"
readarray -t two < <(head -1 t.csv; echo extra); echo "${two[*]}"
exec 3< t.csv; read -r -u 3 first; read -r second <&3; exec 3<&-; echo "$first|$second"
read -r -d ';' part <<< "until;rest"; echo "$part"
read -r -n 3 three <<< "abcdef"; echo "$three"
count=0; cat t.csv | while read -r _; do count=$((count + 1)); done; echo $count
while read -r l || [[ -n $l ]]; do count=$((count + 1)); done < t.csv; echo $count
IFS= read -r kept <<< "  spaces  "; echo "[$kept]"
read -r a b <<< "one two three"; echo "$b"
printf 'x\0y\0' | while IFS= read -r -d '' item; do echo "item $item"; done
rm t.csv
