#!/usr/bin/env bash
mkdir -p a/b; touch a/1 a/2; cp a/1 a/b/3; mv a/2 a/b/4; ls a a/b
cp -r a c; find c | sort; rm -rf c/b; ls c
ln -s 1 a/link; readlink a/link; [ -L a/link ] && echo link; cat a/link
echo content > a/1; cat a/link
basename /x/y.txt .txt; dirname /x/y/z; basename a/b/
stat -c '%s %n' a/1
chmod 600 a/1; stat -c %a a/1; chmod u+x a/1; stat -c %a a/1; chmod 755 a/1; stat -c %A a/1
du -b a/1 | cut -f1
f=$(mktemp); echo t > "$f"; cat "$f"; rm "$f"; [ -e "$f" ] || echo removed
truncate -s 5 a/1; wc -c < a/1
split -l 2 <(seq 5) part.; ls part.*; cat part.ac; rm part.*
seq 10 > n; head -3 n | xargs; tail -2 n | xargs; tail -n +9 n | xargs; head -c 3 n; sed -n 4p n
rmdir a 2>/dev/null || echo not empty
touch -d '2020-01-02 03:04:05' n; date -u -r n +%F
for x in *; do echo "entry $x"; done
shopt -s nullglob; for x in *.none; do echo never; done; shopt -u nullglob
echo *.none
pushd a >/dev/null; basename "$PWD"; popd >/dev/null
cd a && cd - >/dev/null; ls -1 | wc -l
ls -A a | xargs
rm -r a c n; ls
