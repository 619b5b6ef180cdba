#!/usr/bin/env bash
# Checks the HTTP edge against openapi.json from outside, with schemathesis: it
# makes up requests, right and wrong ones, and holds the answers against the
# document. Needs Python 3 with pip, and a package index the first time; says SKIP
# and succeeds without them. Arguments go to `schemathesis run` (--max-examples 20).
set -euo pipefail
cd "$(dirname "$0")/.."
version=4.32.5
state=${OPENSKILL_STATE_DIR:-.openskill}
venv=$state/venv-schemathesis-$version

if [ ! -x "$venv/bin/schemathesis" ] || ! "$venv/bin/schemathesis" --version >/dev/null 2>&1; then
  rm -rf "$venv"
  if ! { python3 -m venv "$venv" && "$venv/bin/pip" install --quiet --disable-pip-version-check "schemathesis==$version"; } >/dev/null 2>&1; then
    rm -rf "$venv"
    echo "SKIP: schemathesis $version cannot be installed (python3 with venv and pip, and a package index, are needed)"
    exit 0
  fi
fi

work=$(mktemp -d)
server=
finish() {
  exec 3>&- || true # the server ends with its standard input
  [ -z "$server" ] || wait "$server" || true
  rm -rf "$work"
}
trap finish EXIT
go -C lab build -o "$work/testserver" ./testserver
mkfifo "$work/stdin"
"$work/testserver" <"$work/stdin" >"$work/address" 2>"$work/log" &
server=$!
exec 3>"$work/stdin"
for _ in $(seq 100); do
  [ ! -s "$work/address" ] || break
  sleep 0.1
done
address=$(cat "$work/address")
[ -n "$address" ] || { cat "$work/log" >&2; exit 1; }

if ! "$venv/bin/schemathesis" --config-file scripts/schemathesis.toml run "http://$address/openapi.json" \
  --checks all --mode all --suppress-health-check all --request-timeout 10 --workers 1 --no-color "$@"; then
  echo "log of the server:" >&2
  tail -n 50 "$work/log" >&2
  exit 1
fi
