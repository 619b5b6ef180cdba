#!/bin/sh
# build-rust-guest.sh SOURCE.rs OUT.wasm: compiles one file without dependencies.
# Where Rust cannot be had it says so in one line and ends with success.
set -eu
missing() {
	echo "$1: the benchmark $(basename "$1" .rs) is left out ($2)" >&2
	exit 0
}
command -v rustc >/dev/null 2>&1 || missing "$1" "rustc not found"
target=wasm32-wasip1
has() { lib=$(rustc --print target-libdir --target "$1" 2>/dev/null) && ls "$lib"/libstd-*.rlib >/dev/null 2>&1; }
if ! has "$target"; then
	command -v rustup >/dev/null 2>&1 && rustup target add "$target" >/dev/null 2>&1 || true
	has "$target" || target=wasm32-wasi
	has "$target" || missing "$1" "rustc has no target wasm32-wasip1"
fi
rustc --edition 2021 --target "$target" -C opt-level=3 -C lto -C codegen-units=1 -C panic=abort -C strip=symbols -o "$2.new" "$1"
mv -f "$2.new" "$2"
