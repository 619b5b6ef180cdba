#!/bin/bash
echo -n 'hello world' | base64
echo aGVsbG8= | base64 -d; echo
echo -n abc | sha256sum
echo -n abc | md5sum | cut -d' ' -f1
echo -n abc | sha1sum | cut -c1-10
printf 'AB\x01\xff' | xxd
printf 'AB\x01\xff' | xxd -p
echo 4142 | xxd -r -p; echo
printf 'hi' | od -An -tx1
printf 'hi\n' | od -c | head -1
head -c 3 /dev/zero | wc -c
echo -n abc > f; sha256sum f > f.sum; sha256sum -c f.sum; rm f f.sum
printf '%s' 'a b&c' | jq -sRr @uri
head -c 300 /dev/zero | base64 -w 0 | wc -c
echo "é" | wc -c; x=é; echo ${#x}
printf '\303\251\n'
head -c 20 /dev/urandom | base64 | wc -c
