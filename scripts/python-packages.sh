#!/bin/sh
# python-packages.sh DIR: fetches into DIR the HTTP libraries for Python that tests run in the
# sandbox: wheels without native code, pinned with their hashes. Where they cannot be had, a
# line says so, and the tests that need them are skipped.
set -eu

dir=$1
pins=scripts/python-packages/requirements.txt
ready="$dir/$(cksum <"$pins" | cut -d' ' -f1)"
[ ! -e "$ready" ] || exit 0
rm -rf "$dir"
mkdir -p "$dir"
if python3 -m pip download --disable-pip-version-check --quiet --require-hashes --no-deps --only-binary :all: \
	--platform any --implementation py --abi none --dest "$dir" -r "$pins"; then
	touch "$ready"
else
	rm -rf "$dir"
	echo "python-packages: no HTTP libraries for Python: pip could not download them" >&2
fi
