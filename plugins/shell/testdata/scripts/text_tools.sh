#!/bin/bash
printf 'one\ntwo\nthree\n' | tac | rev
echo 'a-b_c' | tr -d '_-'; echo aabbcc | tr -s abc; echo 'Hello' | tr '[:upper:]' '[:lower:]'; echo abc | tr -c 'a\n' x
printf 'a\tb\n' | expand -t 4; printf 'x\n\n\ny\n' | cat -s; printf 'l1\nl2\n' | cat -n
echo 'the cat the dog' | tr ' ' '\n' | sort | uniq -c | sort -k1nr -k2 | awk '{print $2 $1}'
printf '%s\n' 1 2 3 4 5 6 | sed -n 'n;p' | xargs
printf 'name\tqty\nnut\t3\n' | column -t
echo 1234567 | sed ':a;s/\B[0-9]\{3\}\>/,&/;ta'
printf 'k=v\n' | cut -d= -f2; echo a:b:c | awk -F: '{print NF}'
echo 'some long text that wraps' | fold -s -w 10
printf 'b 2\na 1\n' | sort | tee /dev/stderr 2>/dev/null | wc -l
numfmt --to=iec 1048576; numfmt --from=si 2K
factor 60; seq 3 | tac | paste -sd' '
printf '1 2\n3 4\n' | while read -r a b; do echo $((a * b)); done
echo "x y z" | xargs -n1 echo item
cal >/dev/null 2>&1; echo done
