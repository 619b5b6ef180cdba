# What zip 3.0 and unzip 6.00 of Info-ZIP print is archives.golden, sorted.
set -u
mkdir -p d/e out; seq 1000 > d/e/n.txt; echo hi > d/hi.txt; : > d/empty; echo skip > d/skip.tmp
zip -r a.zip d -x '*.tmp'
unzip a.zip -d out; cat out/d/hi.txt; wc -l < out/d/e/n.txt
unzip -p a.zip d/hi.txt
unzip -l a.zip | sed 's/20..-..-.. ..:../DATE/'
unzip -Z1 a.zip
unzip -q -o a.zip 'd/h*' -d out2; find out2 -type f
unzip -n a.zip -d out; echo "n $?"
unzip a.zip nothing; echo "missed $?"
unzip none.zip; echo "none $?"
unzip -j a.zip d/hi.txt -d flat; ls flat
echo two > d/hi.txt; zip a.zip d/hi.txt; unzip -p a.zip d/hi.txt
zip -d a.zip d/hi.txt; unzip -Z1 a.zip
zip -j flat.zip d/hi.txt d/e/n.txt; unzip -t flat.zip; echo "t $?"
zip -0 -q stored.zip d/hi.txt; unzip stored.zip -d out3
zip none.zip nothing; echo "nothing $?"
ls -d d/* | zip -q names -@; unzip -Z1 names.zip
