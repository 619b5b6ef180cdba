#!/bin/sh
# build-rust-skill.sh FOLDER: builds the Cargo package in FOLDER into
# FOLDER/NAME.wasm, NAME being the folder's. Where Rust cannot be had it says so
# in one line and ends with success: the skill then answers through its fallback.
set -eu

folder=${1:?usage: build-rust-skill.sh FOLDER}
name=$(basename "$folder")
state=${OPENSKILL_STATE_DIR:-.openskill}

missing() {
	echo "$1: the skill $name answers through its Python fallback; install Rust with rustup, or your distribution's cargo and libstd-rust-dev-wasm32, and run make skills" >&2
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

# has TARGET: whether the standard library for TARGET is installed.
has() {
	lib=$(rustc --print target-libdir --target "$1" 2>/dev/null) && ls "$lib"/libstd-*.rlib >/dev/null 2>&1
}

target=wasm32-wasip1
if ! has "$target"; then
	if command -v rustup >/dev/null 2>&1; then
		rustup target add "$target" >/dev/null 2>&1 || missing "rustup could not add the target $target"
	fi
	# The name of the same target before Rust 1.78, which distributions still have.
	has "$target" || target=wasm32-wasi
	has "$target" || missing "rustc has no target wasm32-wasip1"
fi

# Outside the skill's folder, which is hashed, and one for all skills.
mkdir -p "$state/build/cargo"
CARGO_TARGET_DIR=$(cd "$state/build/cargo" && pwd)
export CARGO_TARGET_DIR

log=$(mktemp "$CARGO_TARGET_DIR/log.XXXXXX")
made=$(mktemp "$folder/.$name.wasm.XXXXXX")
trap 'rm -f "$log" "$made"' EXIT

cargo fetch --quiet --locked --manifest-path "$folder/Cargo.toml" >"$log" 2>&1 ||
	cargo fetch --quiet --locked --offline --manifest-path "$folder/Cargo.toml" >"$log" 2>&1 ||
	missing "cargo could not fetch its crates (no network?)"

# The same bytes wherever the sources and the crates lie.
RUSTFLAGS="--remap-path-prefix=$(pwd -P)=/src"
for crates in "${CARGO_HOME:-$HOME/.cargo}"/registry/src/*; do
	RUSTFLAGS="$RUSTFLAGS --remap-path-prefix=$crates=/crates"
done
export RUSTFLAGS

if ! cargo build --quiet --release --locked --offline --target "$target" --manifest-path "$folder/Cargo.toml" >"$log" 2>&1; then
	cat "$log" >&2
	exit 1
fi
cp "$CARGO_TARGET_DIR/$target/release/$name.wasm" "$made"
chmod 644 "$made"
mv -f "$made" "$folder/$name.wasm"
