# What one command leaves of the script's input is the next one's.
read -r first
mkdir d; touch d/x; ls d
next() { read -r line && echo "next: $line"; }
next
eval 'read -r third; echo "eval: $third"'
grep -c . "$0" > /dev/null
awk 'BEGIN { print 1 + 1 }'
(read -r sub; echo "subshell: $sub")
while read -r l; do echo "loop: $l"; [ "$l" = stop ] && break; done
echo "$first $(next)"
cat
cat; echo empty
read -r none || echo "end: $?"

printf 'a\nb\nc\n' > f
while read -r l; do next; echo "file: $l"; done < f
printf 'a\nb\nc\n' | while read -r l; do echo "$l: $(wc -l)"; done
printf 'a\nb\nc\n' | { read -r l; grep c; echo "$l"; cat; }
printf 'a\nb\n' | { cat f > /dev/null; cat; }
while read -r l; do sort f > /dev/null; echo "$l"; done < f
while read -r l; do sort | tail -n 1; echo "$l"; done < f
printf 'x y\n' | { cat /dev/stdin; }
echo "$(< /dev/stdin)"
for n in 1 2; do cat; done <<< 'once'
