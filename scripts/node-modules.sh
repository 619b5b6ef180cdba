#!/bin/sh
# node-modules.sh DIR: puts node.bin into DIR, which runs scripts written for Node and which
# the program embeds: JavaScript of the crate wasm-rquickjs, by cargo, packages by npm, and
# plugins/javascript/prelude/node, in one file, compiled by the QuickJS that runs it. All is
# pinned with its hash, and so is the result; UPDATE=1 pins another. Where it cannot be had
# a line says so, and scripts run without Node's modules.
set -eu

dir=$1
root=$PWD
pins=scripts/node-modules
glue=plugins/javascript/prelude/node
crate=wasm-rquickjs
version=0.4.14
digest=29216875b0cb88b95f03503ebcf9402e3a2b8926242761e277dbf02379b5289d

ready="$dir/ready-$(cat "$0" "$pins"/* "$glue"/* plugins/javascript/runtime.go | cksum | cut -d' ' -f1)"
[ ! -e "$ready" ] || [ ! -e "$dir/node.bin" ] || exit 0

missing() {
	rm -f "$dir/node.bin"
	echo "node-modules: not installed: $1; scripts written for Node run without Node's modules" >&2
	exit 0
}
command -v node >/dev/null 2>&1 && command -v npm >/dev/null 2>&1 || missing "node and npm not found"
command -v cargo >/dev/null 2>&1 || missing "cargo not found"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp "$pins/package.json" "$pins/package-lock.json" "$pins/bundle.mjs" "$work/"
cp -R "$glue" "$work/node"
# cargo info downloads a crate, and no other that it depends on.
cargo info "$crate@$version" --quiet >/dev/null 2>&1 || missing "cargo could not fetch $crate $version"
for file in "${CARGO_HOME:-$HOME/.cargo}"/registry/cache/*/"$crate-$version.crate"; do
	if echo "$digest  $file" | sha256sum -c --status 2>/dev/null; then
		tar -xzf "$file" -C "$work"
		break
	fi
done
[ -d "$work/$crate-$version" ] || missing "$crate $version has another hash than the pinned one"
npm ci --prefix "$work" --ignore-scripts --no-audit --no-fund --silent || missing "npm could not install its packages"
(cd "$work" && node bundle.mjs "$crate-$version" node node.js) || missing "esbuild could not put them together"
${GO:-go} run ./plugins/javascript/prelude/compile "$work/node.js" "$work/node.bin" || missing "QuickJS could not compile them"

if [ -n "${UPDATE:-}" ]; then
	(cd "$work" && sha256sum node.bin) >"$root/$pins/sha256"
	ready="$dir/ready-$(cat "$0" "$pins"/* "$glue"/* plugins/javascript/runtime.go | cksum | cut -d' ' -f1)"
fi
(cd "$work" && sha256sum -c --status "$root/$pins/sha256") || missing "the result has another hash than scripts/node-modules/sha256; after a change of $glue run UPDATE=1 $0 $dir"
rm -f "$dir"/ready-*
mv "$work/node.bin" "$dir/.node.bin-$$"
mv "$dir/.node.bin-$$" "$dir/node.bin"
touch "$ready"
