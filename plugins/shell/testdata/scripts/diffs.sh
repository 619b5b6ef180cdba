#!/bin/bash
mkdir a b; printf '1\n2\n3\n4\n5\n6\n7\n8\n9\n' > a/f; sed 's/5/five/; 9d' a/f > b/f
echo same > a/s; echo same > b/s; echo left > a/l; echo right > b/r; mkdir a/sub b/sub; echo x > a/sub/y; echo z > b/sub/y
diff a/f b/f; echo "rc $?"
diff a/s b/s && echo identical
diff -q a/f b/f
diff -u a/f b/f | tail -n +3
diff -u --label old --label new a/f b/f | head -3
diff -r a b; echo "rc $?"
diff -rq a b
diff -rN a b | grep -c '^diff'
printf 'A  b\n' > x; printf 'a b\n' > y
diff -iw x y && echo loose
diff -i x y >/dev/null || echo spaces differ
printf 'no newline' > x; diff x y
diff -u /dev/null y | tail -1
diff none y 2>&1; echo "rc $?"
cmp a/s b/s && echo cmp same
rm -r a b x y
