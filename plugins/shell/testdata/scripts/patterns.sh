#!/bin/bash
# Quotes, braces and expansions in the patterns of parameter expansions.
x='a {{k}} b {{k}}' k=k p=a/b/c q=/b u=
echo "${x//\{\{${k}\}\}/v}" "${x//\{\{$k\}\}/v}" "${x//"{{$k}}"/v}" ${x//\{\{${k}\}\}/v}
echo "${x/\{\{k\}\}/v}" "${x//k/{}" "${x#*{}" "${x%%{*}" "${x%\}*}"
echo "${x//[{]/_}" "${x//\{/_}" "${x//'{'/_}" "${x//"}"/_}" "${x//'{{k}}'/v}"
echo "${u:-{}}" "${x:-{}}" "${u:-{a,b}}" "${u:-"{\"a\": 1}"}" ${u:-'{}'}
y=${x//\{\{${k}\}\}/$p}; echo "$y"
y="${x//"{{${k}}}"/$p}"; echo "$y"
y="${x//{{${k}\}\}/${p//${q}/_}}"; echo "$y"
echo "${p//${q}/-}" "${p//${q//\//\\/}/Z}" "${p//\//\\/}" "${p//\//%2F}"
s='say "hi" \ now'
echo "${s//\"/\\\"}" ${s//\"/\\\"}; t="${s//\\/\\\\}"; t="${t//\"/\\\"}"; echo "{\"k\":\"$t\"}"
s="it's"; echo "'${s//\'/\'\\\'\'}'" "${s//\'/\'\\\'\'}" "${s/\'/}"
s=$'a\tb\nc'; echo "${s//$'\n'/\\n}" "${s//$'\t'/ }" "${s//[$'\t\n']/,}"
f=/tmp/archive.tar.gz; echo "${f##*/}" "${f%.*}" "${f%%.*}" "${f#"/tmp/"}" "${f/#\/tmp/T}" "${f/%.gz/.xz}" "${f/%"$u"/!}"
a=(a.txt 'b c.txt'); echo "${a[@]/%.txt/.md}" "${#a[1]}" "${a[1]// /_}"
n='$HOME/`x`'; echo "${n//\$/S}" "${n//\`/B}"
v='  trim me  '; v="${v#"${v%%[![:space:]]*}"}"; v="${v%"${v##*[![:space:]]}"}"; echo "<$v>"
cat <<END
${x//\{\{${k}\}\}/in} ${p//\//:} ${u:-"none"} ${s//[[:space:]]/_}
END
p=a/b/c a=(a.txt b) i=1
echo ${p/$(echo a)/X} "${p/$(echo a)/X}" "${p/a/$(echo X)}" "${p#$(echo a)}" "${p#*$(echo b)}" "${p/b/$((i + 1))}"
echo "${a[0]//a/${#a[@]}}" "${p/a/${a[1]}}" "${p/a/${a[i]}}" "${u:-${a[0]}}" "${u:-${p:2:3}}" ${u:-${#a[@]}}
n='$HOME/`x`'; s="it's"; echo "${n/\$HOME/H}" "${s//"'"/"'\\''"}" "${s//\'/\"\$\"}"
