# tr, cut, wc and tee, which GNU's tools do by bytes.
printf 'Hello, Wörld\t7\n' | tr a-z A-Z
echo 'aabbccdd' | tr -s a-c
echo 'aabbccdd' | tr -s 'a-c' 'x'
echo 'a1b2c3' | tr -d '[:digit:]'
echo 'a1b2c3' | tr -cd '[:digit:]\n'
echo 'a1b2  c3' | tr -ds '0-9' ' '
echo 'one two' | tr ' ' '\n'
echo 'one/two' | tr / '\134'
echo 'abcdef' | tr 'a-f' '123'
echo 'abcdef' | tr -t 'a-f' '123'
echo 'abcdef' | tr 'a-f' '[x*]'
echo 'abcdef' | tr 'a-f' '[x*2]y'
echo 'a-b_c' | tr -- '-_' '  '
echo 'x[1]' | tr '[]' '()'
echo 'über' | tr -cs '[:alnum:]' '_'; echo
echo 'abc' | tr 'c-a' 'x' 2>&1 | sed "s/[‘’]/'/g"; echo ${PIPESTATUS[-2]}
echo 'abc' | tr a 2>&1 | sed "s/[‘’]/'/g"; echo ${PIPESTATUS[-2]}
echo 'abc' | tr -d a b 2>&1 | sed "s/[‘’]/'/g"; echo ${PIPESTATUS[-2]}
echo 'abc' | tr -x a b 2>&1 | sed "s/[‘’]/'/g"; echo ${PIPESTATUS[-2]}
echo 'abc' | tr '[:nope:]' b 2>&1 | sed "s/[‘’]/'/g"; echo ${PIPESTATUS[-2]}
yes abc | tr a-z A-Z | head -n 2

printf 'a:b:c\nd\n:e:\n' > f
cut -d: -f1 f; cut -d: -f2- f; cut -d: -f-2 f; cut -d: -f3,1 f; cut -s -d: -f1 f
cut -d: -f1,3 --output-delimiter=' and ' f
cut -d: --complement -f2 f
cut -c1-2,4 f; cut -b2 f; echo 'äöü' | cut -b1-2
cut -c2- <<< 'abcdef'; cut -c -3 <<< 'abcdef'; cut -c1,3-4 --output-delimiter=+ <<< 'abcdef'
printf 'a b\0c d\0' | cut -z -d' ' -f2 | tr '\0' '\n'
printf 'no newline' | cut -d' ' -f2
cut -d: -f0 f 2>&1 | sed "s/[‘’]/'/g"; echo ${PIPESTATUS[-2]}
cut -d: f 2>&1 | sed "s/[‘’]/'/g"; echo ${PIPESTATUS[-2]}
cut -d:: -f1 f 2>&1 | sed "s/[‘’]/'/g"; echo ${PIPESTATUS[-2]}
cut -f3-1 f 2>&1 | sed "s/[‘’]/'/g"; echo ${PIPESTATUS[-2]}
cut -f1 none 2>&1 | sed "s/[‘’]/'/g"; echo ${PIPESTATUS[-2]}
cat f | cut -d: -f1 - f
seq 1 3 | paste -sd' ' | cut -d ' ' -f 2

wc f; cat f | wc; wc -l f; wc -l < f; wc -c f f; wc -w f; wc -lw f; wc -L f
printf 'äöü x\n' | wc -m; printf 'äöü x\n' | wc -c; printf 'a\tb\n' | wc -L
printf '' | wc; printf 'x' | wc -l
cat f | wc - f
wc none f 2>&1 | sed "s/[‘’]/'/g"; echo ${PIPESTATUS[-2]}
wc -q f 2>&1 | sed "s/[‘’]/'/g"; echo ${PIPESTATUS[-2]}

echo one | tee a b; cat a b
echo two | tee -a a > /dev/null; cat a
echo three | tee none/x 2>&1; echo "${PIPESTATUS[@]}"
echo four | tee /dev/stderr 2>/dev/null
