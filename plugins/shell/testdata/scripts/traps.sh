#!/bin/bash
cleanup() { code=$?; rm -rf "$dir"; echo "cleaned, $code"; }
dir=$(mktemp -d)
trap cleanup EXIT
echo data > "$dir/file"
[ -f "$dir/file" ] && echo made
trap 'echo got usr1' USR1
kill -USR1 $$
trap - USR1
( trap 'echo sub exit' EXIT; echo in sub )
f() { trap 'echo returned' RETURN; echo in f; trap - RETURN; }
f
trap -p EXIT
exit 3
