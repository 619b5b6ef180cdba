#!/bin/sh
# typescript.sh DIR: sets up in DIR the compiler of TypeScript, pinned with its hash, by
# which a test checks the types in sdk/typescript. Where it cannot be had a line says so,
# and the test that needs it is skipped.
set -eu

dir=$1
pins=scripts/typescript
ready="$dir/ready-$(cat "$pins/package.json" "$pins/package-lock.json" | cksum | cut -d' ' -f1)"
[ ! -e "$ready" ] || exit 0
rm -rf "$dir"
mkdir -p "$dir"
cp "$pins/package.json" "$pins/package-lock.json" "$dir/"
if command -v node >/dev/null 2>&1 && npm ci --prefix "$dir" --ignore-scripts --no-audit --no-fund --silent; then
	touch "$ready"
else
	rm -rf "$dir"
	echo "typescript: no compiler of TypeScript: node and npm could not install it" >&2
fi
