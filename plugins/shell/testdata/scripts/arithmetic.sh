#!/usr/bin/env bash
echo $((7 / 2)) $((7 % 3)) $((-7 / 2)) $((2 ** 10)) $((1 << 4)) $((0xff)) $((010)) $((2#1011))
i=5; ((i++)); ((i += 10)); echo $i
((i > 15)) && echo larger
echo $((i > 15 ? 1 : 0)) $((!0)) $((~5)) $((5 & 3 | 8)) $((5 ^ 1))
let "j = i * 2" k=j+1; echo $j $k
for ((a = 0, b = 10; a < b; a += 3, b--)); do echo -n "$a,$b "; done; echo
echo $((9223372036854775807 + 1))
declare -i n=3; n+=4; echo $n
n="2 * 8"; echo $n
echo "scale=4; 10 / 3" | bc
echo "2^100" | bc
echo "sqrt(2); s=3; s*s" | bc -l
printf '%d %05d %x %o %.3f %e\n' 42 42 255 8 3.14159 12345.678
(( 0 )) || echo zero is false
