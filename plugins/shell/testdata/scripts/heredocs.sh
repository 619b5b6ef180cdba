#!/usr/bin/env bash
name=world
cat <<EOF
Hello $name, $((1 + 2)), $(echo sub)
 \$escaped "quoted"
EOF
cat <<'EOF'
No $expansion `here`
EOF
	cat <<-EOF
	tabs are
	stripped
	EOF
cat <<< "a here string"
while read -r k v; do echo "$v is $k"; done <<EOF
one 1
two 2
EOF
cat <<A; cat <<B
first
A
second
B
sum=$(cat <<EOF | awk '{s+=$1} END {print s}'
10
20
EOF
)
echo "$sum"
