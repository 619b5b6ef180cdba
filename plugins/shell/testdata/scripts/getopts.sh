#!/bin/bash
usage() { echo "usage: tool [-v] [-o FILE] NAME..." >&2; exit 2; }
run() {
  local OPTIND=1 verbose=0 out=-
  while getopts ":vo:n:" opt; do
    case $opt in
      v) verbose=$((verbose + 1)) ;;
      o) out=$OPTARG ;;
      n) echo "n=$OPTARG" ;;
      :) echo "-$OPTARG needs a value"; return 1 ;;
      \?) echo "unknown -$OPTARG"; return 1 ;;
    esac
  done
  shift $((OPTIND - 1))
  echo "v=$verbose out=$out rest=$*"
}
run -v -o file.txt a b
run -vvn5 -- -x
run -o
run -z
while [[ $# -gt 0 ]]; do case $1 in --name=*) echo "name ${1#*=}"; shift ;; --flag) echo flag; shift ;; *) echo "arg $1"; shift ;; esac; done
set -- --name=zoe --flag x
while [[ $# -gt 0 ]]; do case $1 in --name=*) echo "name ${1#*=}"; shift ;; --flag) echo flag; shift ;; *) echo "arg $1"; shift ;; esac; done
