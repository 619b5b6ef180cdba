#!/usr/bin/env bash
diff <(printf '1\n2\n3\n') <(printf '1\nx\n3\n'); echo "diff: $?"
comm -12 <(printf 'a\nb\nc\n') <(printf 'b\nc\nd\n')
paste <(seq 3) <(printf 'x\ny\nz\n')
join <(printf '1 a\n2 b\n') <(printf '1 x\n2 y\n')
echo "$(echo "$(echo nested)")" `echo ticks`
while read -r l; do echo "got $l"; done < <(printf 'p\nq\n')
x=$(printf 'trailing\n\n\n'); echo "[$x]"
tee >(wc -c > n.txt) <<< 12345 >/dev/null; sleep 0.1; echo $(cat n.txt); rm n.txt
