#!/usr/bin/env bash
p=/usr/local/lib/archive.tar.gz
echo "${p##*/} ${p%/*} ${p%%.*} ${p#*.} ${p%.gz}"
echo "${#p} ${p:0:4} ${p: -6} ${p:5:5}"
echo "${p/local/LOCAL} ${p//a/A} ${p/#\/usr/root} ${p/%gz/xz}"
s="Hello World"
echo "${s^^} ${s,,} ${s~~} ${s^} ${s,}"
unset u; e=
echo "${u:-a} ${u-b} ${e:-c} ${e-d} ${s:+set} ${u+set}."
echo "${u:=assigned} $u"
ref=s; echo "${!ref}"
vars_a=1 vars_b=2; echo "${!vars_@}"
echo {1..5} {a..e} {01..03} {10..0..5} x{1,2}{a,b}
echo "${s@Q}" "${s@U}"
set -- one two three
echo "$# $* ${@:2} ${*: -1}"
shift; echo "$1 ${2}"
echo ~+ | grep -c .
echo $'tab\there' $'\u00e9' $'\x41'
a="x  y"; echo $a "$a"
IFS=:; b=1:2:3; echo $b; set -- $b; echo $#
