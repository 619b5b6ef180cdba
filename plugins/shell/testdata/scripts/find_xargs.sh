#!/usr/bin/env bash
mkdir -p t/a/b t/c; echo 1 > t/one.txt; echo 22 > t/a/two.txt; echo 333 > t/a/b/three.md; touch t/c/empty
find t -type f | sort
find t -name '*.txt' | sort
find t -type d -maxdepth 1 | sort
find t -empty -type f
find t -name '*.md' -exec cat {} \;
find t -type f -size +3c | sort
find t -name '*.txt' -print0 | sort -z | xargs -0 cat
find t -type f ! -name '*.txt' | sort
find t \( -name one.txt -o -name empty \) | sort
find t -name '*.txt' -exec wc -c {} + | tail -1 | awk '{print $1}'
echo a b c d | xargs -n 2 echo
printf '%s\n' x y | xargs -I{} echo "<{}>"
echo "1 2 3" | xargs -n1 | sort -r | xargs
find t -mindepth 2 -type f -printf '%f\n' | sort
find t -path '*/b/*' -delete; find t -type f | wc -l
rm -r t
