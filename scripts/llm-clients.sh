#!/bin/sh
# llm-clients.sh DIR: sets up in DIR the official SDKs for Python of OpenAI and Anthropic,
# pinned with their hashes, by which tests hold the scripted model to clients of other
# authors. What cannot be had is named in a line, and the tests that need it are skipped.
set -eu

dir=$1
pins=scripts/llm-clients/requirements.txt
mkdir -p "$dir"

# A virtual environment of its own for each set of versions.
ready="$dir/venv/$(cksum <"$pins" | cut -d' ' -f1)"
[ ! -e "$ready" ] || exit 0
rm -rf "$dir/venv"
if python3 -m venv "$dir/venv" &&
	"$dir/venv/bin/pip" install --disable-pip-version-check --quiet --require-hashes --only-binary :all: -r "$pins"; then
	touch "$ready"
else
	rm -rf "$dir/venv"
	echo "llm-clients: no SDKs of OpenAI and Anthropic for Python: Python 3.11 or newer with venv and pip could not install them" >&2
fi
