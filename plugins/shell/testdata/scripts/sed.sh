#!/usr/bin/env bash
t=$'alpha beta\ngamma delta\nepsilon'
sed 's/a/A/' <<< "$t"
sed 's/a/A/g; s/e$/E/' <<< "$t"
sed -n '2p' <<< "$t"
sed -n '/gamma/,$p' <<< "$t"
sed '2d' <<< "$t"
sed -E 's/(\w+) (\w+)/\2 \1/' <<< "$t"
sed '1i top' <<< "$t" | head -2
sed '$a end' <<< "$t" | tail -1
sed 's|/usr|/opt|' <<< /usr/bin
sed 's/.*/"&"/' <<< "$t"
sed -e 's/x/y/' -e 's/y/z/' <<< x
sed 'N;s/\n/+/' <<< "$t"
sed = <<< a
sed '/^$/d' <<< $'a\n\nb'
sed 'y/abc/xyz/' <<< aabbcc
printf 'one=1\ntwo=2\n' > c; sed -i 's/=1/=10/' c; cat c; rm c
sed -n '$=' <<< "$t"
sed ':a;N;$!ba;s/\n/,/g' <<< "$t"
sed 's/[aeiou]/\U&/g' <<< "$t"
