#!/bin/bash
cat > d.json <<'EOF'
{"items": [{"name": "a", "n": 3, "tags": ["x", "y"]}, {"name": "b", "n": 1, "tags": []}], "next": null, "price": 1.50}
EOF
jq -r '.items[].name' d.json
jq '.items | length' d.json
jq -c '.items | map(select(.n > 1))' d.json
jq -r '.items[] | "\(.name)=\(.n)"' d.json
jq '.items | map(.n) | add' d.json
jq -c '.items | sort_by(.n) | map(.name)' d.json
jq -c 'keys' d.json
jq -r '.items[0].tags | join(",")' d.json
jq -c '.items[] | {name, first: .tags[0]}' d.json
jq -e '.next' d.json >/dev/null; echo "rc $?"
jq -n --arg who world '{hello: $who}'
jq -n --argjson n 5 '$n * 2'
echo '[1,2,3]' | jq -c 'map(. * 2) | {sum: add, max: max}'
echo '{"a":{"b":[1,2]}}' | jq -c 'paths'
echo '"2024"' | jq 'tonumber + 1'
echo '[{"k":"a","v":1},{"k":"b","v":2}]' | jq -c 'from_entries? // (map({(.k): .v}) | add)'
jq -r '.items[] | [.name, .n] | @csv' d.json
jq -r '.items[] | [.name, .n] | @tsv' d.json
echo '{"a":1}' | jq '.b = 2 | del(.a)'
echo '{"a":1}{"a":2}' | jq -s -c 'map(.a)'
jq '.nope.deep' d.json
jq -r '.items | group_by(.n) | .[] | .[0].name' d.json
rm d.json
