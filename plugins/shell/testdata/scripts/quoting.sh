#!/bin/bash
echo 'single $x' "double \$x \"q\"" back\ slash
a='*'; echo "$a"; echo '*'
printf '%q ' 'a b' "it's" '$x' ''; echo
printf '%s|' a "b c" ""; echo
printf '%b\n' 'tab\tnew\\n'
printf '%5s|%-5s|%05.1f|%+d|%c|%%\n' ab cd 3.14159 5 xyz
printf '%s %s\n' 1 2 3
echo -e 'a\tb\\c'; echo -n no; echo " newline"
s='a"b'; q='"'; echo "${s//$q/-}"
echo "multi
line"
echo $(echo "  spaces   squeezed ")
x="a b"; for w in $x; do echo -n "[$w]"; done; for w in "$x"; do echo "[$w]"; done
echo "$(printf '%s' "$(printf 'q"uote')")"
v='$(echo no)'; echo "$v"
echo \
  continued
: <<'C'
a comment in a here document
C
echo "${#v} ${v:2:4}"
