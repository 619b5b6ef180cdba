# Shells nest.
n=${1:-40}
if [ "$n" -gt 0 ]; then
  bash "$0" $((n - 1))
  exit $(($? + 1))
fi
echo bottom
bash -c 'bash -c "bash -c \"echo three: \$0 \$1\" a b"'
nothing_such_as_thiss 2>&1 | sed 's/.*: //'
a=$(mktemp); b=$(mktemp); [ "$a" != "$b" ] && [ -f "$a" ] && echo different
