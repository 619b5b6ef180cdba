#!/bin/sh
# shell.sh STATE: builds the shell, plugins/shell/module, into STATE/runtimes/shell/bash.wasm.
# The crate bashkit is fetched by cargo, at the version and SHA-256 of Cargo.lock, and changed
# by patches/ in a folder of the build. Where Rust cannot be had it says so in one line and
# ends with success: shell scripts are then refused with the same advice.
set -eu

state=${1:?usage: shell.sh STATE}
module=plugins/shell/module
target=wasm32-wasip1

missing() {
	echo "$1: the shell is not installed; install Rust with rustup and its target $target, and run make runtimes" >&2
	exit 0
}

# cargo and rustup look for their files below HOME; services and containers may have none.
if [ -z "${HOME:-}" ]; then
	HOME=$(getent passwd "$(id -u)" 2>/dev/null | cut -d: -f6 || true)
	[ -n "$HOME" ] || HOME=$(mkdir -p "$state/home" && cd "$state/home" && pwd)
	export HOME
fi

command -v cargo >/dev/null 2>&1 || missing "cargo not found"
command -v rustc >/dev/null 2>&1 || missing "rustc not found"
command -v patch >/dev/null 2>&1 || missing "patch not found"
lib=$(rustc --print target-libdir --target "$target" 2>/dev/null) && ls "$lib"/libstd-*.rlib >/dev/null 2>&1 ||
	{ command -v rustup >/dev/null 2>&1 && rustup target add "$target" >/dev/null 2>&1; } ||
	missing "rustc has no target $target"

made=$state/runtimes/shell/bash.wasm
sum=$(cat "$module"/Cargo.toml "$module"/Cargo.lock "$module"/patches/* "$module"/src/* "$0" | sha256sum | cut -d' ' -f1)
[ ! -f "$made" ] || [ "$(cat "$made.from" 2>/dev/null)" != "$sum" ] || exit 0

mkdir -p "$state/build/cargo" "$state/build/shell" "$state/runtimes/shell"
work=$(cd "$state/build/shell" && pwd -P)
exec 9>"$work/lock"
! command -v flock >/dev/null 2>&1 || flock 9
CARGO_TARGET_DIR=$(cd "$state/build/cargo" && pwd)
export CARGO_TARGET_DIR

cargo fetch --quiet --locked --manifest-path "$module/Cargo.toml" >"$work/log" 2>&1 ||
	cargo fetch --quiet --locked --offline --manifest-path "$module/Cargo.toml" >"$work/log" 2>&1 ||
	missing "cargo could not fetch its crates (no network?)"

# What Cargo.lock pins of bashkit: "version" and "checksum" of its entry.
pinned=$(awk '/^name = /{n=$3} n=="\"bashkit\"" && /^version = /{gsub(/"/,"",$3); v=$3} n=="\"bashkit\"" && /^checksum = /{gsub(/"/,"",$3); print v, $3}' "$module/Cargo.lock")
version=${pinned% *}
crate=$(ls "${CARGO_HOME:-$HOME/.cargo}"/registry/cache/*/"bashkit-$version.crate" | head -n 1)
echo "${pinned#* }  $crate" | sha256sum -c --status || {
	echo "$crate is not the one that Cargo.lock pins" >&2
	exit 1
}

# The same with the changed crate: its entry in the lock file has no source then.
changes=$(cat "$module/Cargo.lock" "$module"/patches/* | sha256sum)
if [ "$(cat "$work/changes" 2>/dev/null)" != "$changes" ]; then
	rm -rf "$work/bashkit-$version"
	tar xzf "$crate" -C "$work" --no-same-owner
	cat "$module"/patches/* | patch -s -p1 -d "$work/bashkit-$version"
	echo "$changes" >"$work/changes"
fi
rm -rf "$work/src"
cp -Rp "$module/src" "$work/"
{
	cat "$module/Cargo.toml"
	printf '\n[patch.crates-io]\nbashkit = { path = "bashkit-%s" }\n' "$version"
} >"$work/Cargo.toml"
awk '/^name = /{n=$3} n=="\"bashkit\"" && /^(source|checksum) = /{next} {print}' "$module/Cargo.lock" >"$work/Cargo.lock"

# The same bytes wherever the sources and the crates lie.
RUSTFLAGS="-C link-arg=-zstack-size=16777216 --remap-path-prefix=$work=/src"
for crates in "${CARGO_HOME:-$HOME/.cargo}"/registry/src/*; do
	RUSTFLAGS="$RUSTFLAGS --remap-path-prefix=$crates=/crates"
done
export RUSTFLAGS

if ! cargo build --quiet --release --locked --offline --target "$target" --manifest-path "$work/Cargo.toml" >"$work/log" 2>&1; then
	cat "$work/log" >&2
	exit 1
fi
cp "$CARGO_TARGET_DIR/$target/release/bash.wasm" "$work/bash.wasm"
chmod 644 "$work/bash.wasm"
mv -f "$work/bash.wasm" "$made"
echo "$sum" >"$made.from"
