#!/bin/bash
items=(alpha "be ta" 'ga"mma')
printf '%s\n' "${items[@]}" | jq -R . | jq -sc .
json=$(jq -nc --arg n "${items[1]}" --argjson on true '{name: $n, on: $on, at: null}'); echo "$json"
name=$(jq -r .name <<< "$json"); echo "$name"
while IFS=$'\t' read -r k v; do echo "$k -> $v"; done < <(jq -r 'to_entries[] | "\(.key)\t\(.value)"' <<< "$json")
jq -c '. + {extra: [1,2]} | .extra[1]' <<< "$json"
for row in $(echo '[{"a":1},{"a":2}]' | jq -r '.[] | @base64'); do echo "$row" | base64 -d | jq .a; done
