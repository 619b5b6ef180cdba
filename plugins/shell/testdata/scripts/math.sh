#!/bin/bash
echo "scale=2; 100 / 3; 5.5 * 2.25; -7 / 2; 7 % 3" | bc
echo "10.5 + 3 + 7.25" | bc
echo "obase=16; 255; obase=2; 10" | bc
echo "ibase=16; FF" | bc
echo "x = 5; while (x > 3) { x = x - 1; x }" | bc
echo "for (i = 0; i < 3; i++) i ^ 2" | bc
bc <<< "2^200"
bc -l <<< "4 * a(1); l(2); e(1); s(1); c(0)"
pi=$(echo "scale=10; 4*a(1)" | bc -l); echo "$pi"
total=0; for n in 1.25 2.5 3.75; do total=$(echo "$total + $n" | bc); done; echo "$total"
if [ "$(echo "3.2 > 3.1" | bc -l)" -eq 1 ]; then echo larger; fi
awk 'BEGIN { printf "%.4f %.4f %d\n", atan2(0, -1), exp(1), log(100) / log(10) }'
expr 7 \* 6; expr 17 % 5; expr 3 \> 2
echo $((16#ff)) $((36#z)) 
