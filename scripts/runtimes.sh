#!/bin/sh
# runtimes.sh [NAME…]: installs the first of these Python runtimes that can be had;
# without names slim, or else python-3.12. Where none can be had it says so and ends
# with success: Python skills then answer through their CLI fallback.
set -eu

[ $# -gt 0 ] || set -- slim python-3.12
for name in "$@"; do
	status=0
	bin/openskill runtime install "$name" --no-compile >/dev/null || status=$?
	case $status in
	0) exit 0 ;;
	1) ;; # the line that says what is missing is printed
	*) exit "$status" ;;
	esac
done
echo "no Python runtime: Python skills answer through their CLI fallback; run make runtimes once pip (or npm) can fetch" >&2
