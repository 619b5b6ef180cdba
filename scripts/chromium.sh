#!/bin/sh
# chromium.sh: sees to a Chromium by which tests use the console. In CI, as root, Debian's
# package is installed where it is missing; elsewhere it is left to you, and the tests that
# need it are skipped.
set -eu

found() { command -v chromium >/dev/null 2>&1 || command -v chromium-browser >/dev/null 2>&1 || command -v google-chrome >/dev/null 2>&1; }

if found; then
	exit 0
fi
if [ "${CI:-}" = true ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
	if apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium >/dev/null && found; then
		exit 0
	fi
fi
echo "chromium: no Chromium here, so that the console is not tested in a browser; apt-get install chromium, or your system's package, brings it in" >&2
