#!/usr/bin/env bash
cat > log <<'EOF'
2024-01-02 ERROR disk full
2024-01-02 INFO started
2024-01-03 WARN slow query
2024-01-04 ERROR timeout after 30s
EOF
grep ERROR log
grep -c ERROR log
grep -n -i warn log
grep -v -E 'ERROR|WARN' log
grep -o '[0-9]*s$' log
grep -E '^2024-01-0[34]' log | cut -d' ' -f2
grep -A1 full log
grep -B1 -n slow log
grep -q started log && echo yes
grep nothing log; echo $?
grep -w disk log; grep -x 'no line' log || echo none
mkdir -p d; echo needle > d/a; echo hay > d/b
grep -r needle d; grep -rl needle d; grep -L needle d/a d/b
printf 'a.b\naxb\n' | grep -F a.b
printf 'one\ntwo\n' | grep -e one -e two | wc -l
echo 'key = value' | grep -oP '(?<=key = )\w+'
rm -r log d
