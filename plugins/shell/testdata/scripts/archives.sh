#!/bin/bash
mkdir -p p/q; echo one > p/1; seq 500 > p/q/2
tar -cf p.tar p; tar -tf p.tar | sort
tar -czf p.tgz -C p .; mkdir out; tar -xzf p.tgz -C out; cat out/1; wc -l < out/q/2
mkdir two; tar -xf p.tar -C two p/1; find two -type f
gzip -k p/1; zcat p/1.gz; gunzip -c p/1.gz | cat
echo piped | gzip | gzip -d
echo zc | gzip -c | zcat
gzip p/q/2; ls p/q; gunzip p/q/2.gz; wc -l < p/q/2
tar cf - p | tar xf - -C two; diff -r p two/p && echo round trip
rm -r p p.tar p.tgz out two
