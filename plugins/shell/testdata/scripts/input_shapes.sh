#!/bin/bash
# Standard input of the script, shared by its commands as they read it.
read -r a; echo "1 $a"
read -r -n 1 b; echo "2 $b"
f() { read -r c; echo "3 $c"; }; f
(read -r d; echo "4 $d")
x=$(read -r e; echo "5 $e"); echo "$x"
{ read -r g; echo "6 $g"; } 2>/dev/null
if read -r -t 1 h; then echo "7 $h"; else echo none; fi
read -r i || echo "end"
cat; wc -l; cat - </dev/null; echo "rc $?"
printf 'p\nq' | while read -r l || [ -n "$l" ]; do echo "<$l>"; done
printf 'x\r\ny\r\n' | while IFS= read -r l; do printf '%q\n' "$l"; done
printf 'a\0b\0' | while IFS= read -r -d '' l; do echo "[$l]"; done
printf 'k=v\nk2=w x' | while IFS='=' read -r key value; do echo "$key:$value"; done
printf '1\n2\n3\n' | { read -r z; sed 's/^/s/'; }
mapfile -t m < <(printf 'a\nb'); echo "${#m[@]} ${m[1]}"
exec 4<<<'four'; read -r l <&4; echo "$l"
yes | head -2; seq 1000000 | head -1; yes no | while read -r l; do echo "$l"; break; done
[ -t 0 ] || echo "no terminal"
