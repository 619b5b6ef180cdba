#!/usr/bin/env bash
set -euo pipefail
cat > app.ini <<'EOF'
# settings
[server]
host = localhost
port=8080

[db]
name = test
EOF
declare -A conf; section=
while IFS= read -r line; do
  line=${line%%#*}; line="${line#"${line%%[![:space:]]*}"}"
  [[ -z $line ]] && continue
  if [[ $line =~ ^\[(.+)\]$ ]]; then section=${BASH_REMATCH[1]}; continue; fi
  key=$(echo "${line%%=*}" | xargs); value=$(echo "${line#*=}" | xargs)
  conf[$section.$key]=$value
done < app.ini
for k in $(printf '%s\n' "${!conf[@]}" | sort); do printf '%-12s %s\n' "$k" "${conf[$k]}"; done
export HOST=${conf[server.host]} PORT=${conf[server.port]}
echo 'url: http://$HOST:${PORT}/$KEEP' | envsubst '$HOST $PORT'
printf 'A=1\nB="two words"\n' > .env; set -a; . ./.env; set +a; bash -c 'echo $A-$B'
rm app.ini .env
