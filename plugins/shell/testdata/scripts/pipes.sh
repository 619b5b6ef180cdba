#!/bin/bash
printf '%s\n' c a b | sort | head -2 | tac
echo hello | tr a-z A-Z | rev | sed 's/O/0/'
seq 10 | grep -v 5 | awk 'NR%2' | xargs
false | true | false; echo "${PIPESTATUS[@]}"
{ echo out; echo err >&2; } 2>&1 | sort
echo a |& cat
seq 1000000 | head -1
cat /dev/null | wc -l
echo x | { read -r v; echo "read $v"; }
for i in 3 1 2; do echo $i; done | sort -n | paste -sd+ | bc
(echo one; echo two) > f; cat < f; echo three >> f; wc -l < f; rm f
echo to both | tee f1 f2 | cat; cat f1 f2; rm f1 f2
exec 4> log; echo logged >&4; exec 4>&-; cat log; rm log
echo "quiet" > /dev/null; ls nothing 2> /dev/null || echo "rc $?"
